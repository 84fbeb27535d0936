/* SPDX-License-Identifier: MIT
 *
 * From `chap:` and `access:` to what the iSCSI server asks.
 */
#include "target/security.h"

#include <errno.h>

#include "target/iscsi/access.h"
#include "target/iscsi/secrets.h"

static int open_secrets(const struct chap_config *chap, struct chap_secrets **ret_secrets,
			struct err *err)
{
	int r = chap_secrets_load(chap->secrets, ret_secrets, err);

	if (r || !chap->mutual_user)
		return r;
	if (!chap_secrets_find(*ret_secrets, chap->mutual_user))
		return err_set(err, -EINVAL, "CHAP secrets: %s has no line for mutual-user '%s'",
			       chap->secrets, chap->mutual_user);
	if (!chap_secrets_is_shared(*ret_secrets, chap->mutual_user))
		return 0;
	err_set(err, -EINVAL, "CHAP secrets: in %s another user has the secret of mutual-user '%s'",
		chap->secrets, chap->mutual_user);
	err_hint(err, "who knows one secret must not be able to play both sides (RFC 7143 9.2.1)");
	return -EINVAL;
}

static struct access_list list_of(const struct cfg_list *list)
{
	return (struct access_list){list->items, list->count};
}

static int add_rule(struct iscsi_access *access, const struct access_config *rule,
		    const char *lab_name, struct group *group, const struct exports *exports)
{
	struct access_list initiators = list_of(&rule->initiators);
	struct access_list addresses = list_of(&rule->addresses), users = list_of(&rule->users);
	int number = iscsi_access_add_rule(access, &initiators, &addresses, &users);
	int r = number < 0 ? number : 0;

	for (size_t i = 0; !r && i < group_volume_count(group); i++) {
		const char *name = volume_name(group_volume(group, i));
		const struct scsi_target *target;
		unsigned lun;

		if (!access_config_covers(rule, name))
			continue;
		target = exports_find(exports, group, lab_name, name, &lun);
		r = target ? iscsi_access_grant(access, (unsigned)number, target, lun) : -ENOENT;
	}
	return r;
}

int target_security_open(const struct group_config *config, const char *lab_name,
			 struct group *group, const struct exports *exports,
			 struct iscsi_server *server, struct target_security *ret_security,
			 struct err *err)
{
	const struct access_config *rules = config->access.items;
	struct target_security made = {NULL, NULL};
	int r = 0;

	if (config->chap.secrets)
		r = open_secrets(&config->chap, &made.secrets, err);
	if (!r && config->access.count) {
		made.access = iscsi_access_new();
		r = made.access ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !r && i < config->access.count; i++)
		r = add_rule(made.access, &rules[i], lab_name, group, exports);
	if (r) {
		target_security_close(&made);
		return err_set(err, r, "cannot set up access rules");
	}
	iscsi_server_secure(server, &(struct iscsi_security){
					.secrets = made.secrets,
					.chap_discovery = config->chap.discovery,
					.mutual_user = config->chap.mutual_user,
					.access = made.access,
				    });
	*ret_security = made;
	return 0;
}

void target_security_close(struct target_security *security)
{
	security->secrets = chap_secrets_free(security->secrets);
	security->access = iscsi_access_free(security->access);
}
