/* SPDX-License-Identifier: MIT
 *
 * Authentication methods of the security stage, one row each.
 */
#include "target/iscsi/login.h"

#include <errno.h>

static int none_offer(struct iscsi_login *login, const char *key, const char *value)
{
	return 0;
}

static enum iscsi_login_status none_step(struct iscsi_login *login, struct iscsi_text *out)
{
	return LOGIN_SUCCESS;
}

static bool none_done(const struct iscsi_login *login)
{
	return true;
}

static const struct iscsi_auth_ops auth_none = {"None", none_offer, none_step, none_done};

static int chap_take(struct iscsi_login *login, const char *key, const char *value)
{
	return chap_offer(&login->chap, key, value);
}

static enum iscsi_login_status chap_answer(struct iscsi_login *login, struct iscsi_text *out)
{
	switch (chap_step(&login->chap, out)) {
	case 0:
		return LOGIN_SUCCESS;
	case -EPROTO:
		return LOGIN_INITIATOR_ERROR;
	case -EIO:
		return LOGIN_TARGET_ERROR;
	default:
		return LOGIN_AUTHENTICATION_FAILED;
	}
}

static bool chap_is_done(const struct iscsi_login *login)
{
	return login->chap.state == CHAP_PROVEN;
}

static const struct iscsi_auth_ops auth_chap = {"CHAP", chap_take, chap_answer, chap_is_done};

static bool is_wanted(const struct iscsi_auth_ops *method, const char *list,
		      const struct iscsi_login_env *env)
{
	if (method == &auth_none)
		return !env->auth_required;
	return env->chap && (env->auth_required || !iscsi_list_has(list, auth_none.name));
}

const struct iscsi_auth_ops *iscsi_auth_find(const char *list, const struct iscsi_login_env *env)
{
	static const struct iscsi_auth_ops *const methods[] = {&auth_chap, &auth_none};
	const char *at = list;

	while (*at) {
		size_t size = strcspn(at, ",");

		for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
			if (strlen(methods[i]->name) == size &&
			    strncmp(at, methods[i]->name, size) == 0 &&
			    is_wanted(methods[i], list, env))
				return methods[i];
		}
		at += size + (at[size] == ',');
	}
	return NULL;
}

const char *iscsi_login_user(const struct iscsi_login *login)
{
	return login->auth == &auth_chap && chap_is_done(login) ? login->chap.user : NULL;
}
