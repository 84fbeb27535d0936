/* SPDX-License-Identifier: MIT
 *
 * Authentication methods of the security stage, one row each.
 */
#include "target/iscsi/login.h"

static int none_offer(struct iscsi_login *login, const char *key, const char *value,
		      struct iscsi_text *out)
{
	return 0;
}

static bool none_done(const struct iscsi_login *login)
{
	return true;
}

static const struct iscsi_auth_ops auth_none = {"None", none_offer, none_done};

static const struct iscsi_auth_ops *const methods[] = {&auth_none};

const struct iscsi_auth_ops *iscsi_auth_find(const char *list, bool required)
{
	const char *at = list;

	while (*at) {
		size_t size = strcspn(at, ",");

		for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
			if (strlen(methods[i]->name) != size ||
			    strncmp(at, methods[i]->name, size) != 0)
				continue;
			if (!required || methods[i] != &auth_none)
				return methods[i];
		}
		at += size + (at[size] == ',');
	}
	return NULL;
}
