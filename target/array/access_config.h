/* SPDX-License-Identifier: MIT
 *
 * Who may reach what, as the group's part of the lab file says it.
 */
#ifndef SANLAB_TARGET_ARRAY_ACCESS_CONFIG_H
#define SANLAB_TARGET_ARRAY_ACCESS_CONFIG_H

#include "base/config.h"

/* `access: [{volumes: [db1], initiators: [iqn.*], addresses: [10.0.0.0/8], users: [exchange]}]`;
 * lists of const char *, an absent one fits everybody (volumes: every volume). */
struct access_config {
	struct cfg_list volumes, initiators, addresses, users;
};
extern const struct cfg_schema access_schema;

struct chap_config {
	const char *secrets; /* file; NULL: no CHAP */
	bool discovery;
	const char *mutual_user; /* NULL: initiators cannot ask who we are */
};
extern const struct cfg_schema chap_schema;

struct group_config;
void access_config_check(struct cfg *cfg, const struct group_config *config);

/* Does RULE speak of the volume NAME? */
bool access_config_covers(const struct access_config *rule, const char *volume);

#endif
