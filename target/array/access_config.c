/* SPDX-License-Identifier: MIT
 *
 * Schemas and checks of access rules and CHAP.
 */
#include "target/array/access_config.h"

#include <string.h>

#include "base/bytes.h"
#include "base/cidr.h"
#include "target/array/array.h"

enum { MAX_RULES = 256, MAX_LISTED = 256 };

static const struct cfg_field access_fields[] = {
    {"volumes", CFG_STRINGS, offsetof(struct access_config, volumes),
     .help = "what the rule opens; every volume unless given"},
    {"initiators", CFG_STRINGS, offsetof(struct access_config, initiators),
     .help = "initiator names, * for any characters; every initiator unless given"},
    {"addresses", CFG_STRINGS, offsetof(struct access_config, addresses),
     .help = "where they come from, 10.1.0.0/16 or one address; everywhere unless given"},
    {"users", CFG_STRINGS, offsetof(struct access_config, users),
     .help = "CHAP users of the secrets file; all of them unless given"},
};
const struct cfg_schema access_schema = {"access rule", sizeof(struct access_config), access_fields,
					 ARRAY_SIZE(access_fields)};

static const struct cfg_field chap_fields[] = {
    {"secrets", CFG_STRING, offsetof(struct chap_config, secrets),
     .help = "file of lines 'user secret', mode 0600; given: logins need CHAP"},
    {"discovery", CFG_BOOL, offsetof(struct chap_config, discovery), .preset = "false",
     .help = "discovery sessions need CHAP as well"},
    {"mutual-user", CFG_STRING, offsetof(struct chap_config, mutual_user),
     .help = "user of the secrets file that the target proves to be when initiators ask"},
};
const struct cfg_schema chap_schema = {"chap", sizeof(struct chap_config), chap_fields,
				       ARRAY_SIZE(chap_fields)};

bool access_config_covers(const struct access_config *rule, const char *volume)
{
	const char *const *names = rule->volumes.items;

	for (size_t i = 0; i < rule->volumes.count; i++) {
		if (!strcmp(names[i], volume))
			return true;
	}
	return rule->volumes.count == 0;
}

static void check_volumes(struct cfg *cfg, const struct group_config *config,
			  const struct access_config *rule)
{
	const struct volume_config *volumes = config->volumes.items;
	const char *const *names = rule->volumes.items;

	for (size_t i = 0; i < rule->volumes.count; i++) {
		const char *known[MAX_LISTED + 1];
		size_t count = 0;
		bool found = false;

		for (size_t v = 0; v < config->volumes.count && count < MAX_LISTED; v++) {
			if (!volumes[v].name)
				continue;
			known[count++] = volumes[v].name;
			found = found || !strcmp(volumes[v].name, names[i]);
		}
		known[count] = NULL;
		if (found)
			continue;
		cfg_error_at(cfg, &names[i], "access to the unknown volume '%.60s'", names[i]);
		const char *near = cfg_nearest(names[i], known);
		if (near)
			cfg_hint(cfg, "did you mean '%s'?", near);
	}
}

static void check_rule(struct cfg *cfg, const struct group_config *config,
		       const struct access_config *rule)
{
	const char *const *addresses = rule->addresses.items;
	struct cidr cidr;

	check_volumes(cfg, config, rule);
	for (size_t i = 0; i < rule->addresses.count; i++) {
		if (cidr_parse(addresses[i], &cidr) == 0)
			continue;
		cfg_error_at(cfg, &addresses[i], "'%.60s' is no address and no range of addresses",
			     addresses[i]);
		cfg_hint(cfg, "write 192.0.2.7, 10.1.0.0/16 or fd00::/8");
	}
	if (rule->users.count && !config->chap.secrets) {
		cfg_error_at(cfg, &rule->users, "'users' are known by CHAP alone");
		cfg_hint(cfg, "add chap: {secrets: FILE} to the group");
	}
}

void access_config_check(struct cfg *cfg, const struct group_config *config)
{
	const struct access_config *rules = config->access.items;
	const struct chap_config *chap = &config->chap;

	if (config->access.count > MAX_RULES) {
		cfg_error_at(cfg, &config->access, "a group has at most %d access rules",
			     MAX_RULES);
		return;
	}
	for (size_t i = 0; i < config->access.count; i++)
		check_rule(cfg, config, &rules[i]);
	if (!chap->secrets && (chap->discovery || chap->mutual_user)) {
		cfg_error_at(cfg,
			     chap->mutual_user ? (const void *)&chap->mutual_user
					       : (const void *)&chap->discovery,
			     "'chap' needs a file of secrets");
		cfg_hint(cfg, "chap: {secrets: FILE, ...}");
	}
}
