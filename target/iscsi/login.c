/* SPDX-License-Identifier: MIT
 *
 * Login Request by Login Request: header checks, text assembly, stages, answers.
 *
 * Decisions where RFC 7143 leaves room: a key sent twice is an initiator error (0200), also
 * when both values agree; a key in the wrong stage likewise.  A T bit that comes before the
 * authentication method is content is answered without T.  A redirect is answered to the first
 * complete request, before authentication, so that it cannot look like a failed one.  A login that
 * begins in the operational stage where authentication is required has failed it (0201).
 */
#include "target/iscsi/login.h"

#include <errno.h>

enum { CSG_SHIFT = 2, STAGE_MASK = 3 };

void iscsi_login_init(struct iscsi_login *login, const struct iscsi_login_env *env)
{
	login->env = env;
	iscsi_negotiation_init(&login->negotiation);
	login->stage = STAGE_SECURITY;
	login->started = login->identified = login->tag_sent = false;
	login->auth = NULL;
	chap_init(&login->chap, env->chap);
	login->requests = 0;
	login->status = LOGIN_SUCCESS;
	login->moved_to[0] = '\0';
	login->in_bytes = 0;
	login->out = (struct iscsi_text){.data = login->out_data, .size = sizeof login->out_data};
	login->out_sent = 0;
}

uint8_t *iscsi_login_room(struct iscsi_login *login, uint32_t data_bytes)
{
	if (data_bytes > LOGIN_TEXT_MAX_BYTES - login->in_bytes)
		return NULL;
	return (uint8_t *)login->in + login->in_bytes;
}

static void answer_begin(const struct iscsi_login *login, uint8_t answer[BHS_BYTES])
{
	memset(answer, 0, BHS_BYTES);
	answer[BHS_OPCODE] = OP_LOGIN_RESPONSE;
	memcpy(answer + BHS_ISID, login->isid, sizeof login->isid);
	put_be16(answer + BHS_TSIH, login->tsih);
	put_be32(answer + BHS_ITT, login->itt);
}

void iscsi_login_refuse(const struct iscsi_login *login, enum iscsi_login_status status,
			uint8_t answer[BHS_BYTES])
{
	answer_begin(login, answer);
	if (login->stage !=
	    STAGE_FULL_FEATURE) /* refused when all had been said: no stage any more */
		answer[BHS_FLAGS] = (uint8_t)(login->stage << CSG_SHIFT);
	answer[BHS_STATUS_CLASS] = (uint8_t)(status >> 8);
	answer[BHS_STATUS_DETAIL] = (uint8_t)status;
}

/* The stage bits of a request: LOGIN_SUCCESS when they are possible at this point. */
static enum iscsi_login_status flags_check(struct iscsi_login *login, const uint8_t *bhs)
{
	unsigned csg = bhs[BHS_FLAGS] >> CSG_SHIFT & STAGE_MASK;
	unsigned nsg = bhs[BHS_FLAGS] & STAGE_MASK;
	bool transit = bhs[BHS_FLAGS] & FLAG_TRANSIT;

	if (csg != STAGE_SECURITY && csg != STAGE_OPERATIONAL)
		return LOGIN_INITIATOR_ERROR;
	if (transit && (bhs[BHS_FLAGS] & FLAG_CONTINUE))
		return LOGIN_INITIATOR_ERROR;
	if (transit && (nsg <= csg || nsg == 2))
		return LOGIN_INITIATOR_ERROR;
	if (login->requests > 1 && csg != login->stage)
		return LOGIN_INITIATOR_ERROR;
	login->stage = (enum iscsi_stage)csg;
	return LOGIN_SUCCESS;
}

static enum iscsi_login_status header_check(struct iscsi_login *login, const uint8_t *bhs)
{
	if (!login->started) {
		login->started = true;
		memcpy(login->isid, bhs + BHS_ISID, sizeof login->isid);
		login->tsih = get_be16(bhs + BHS_TSIH);
		login->cid = get_be16(bhs + BHS_CID);
		login->itt = bhs_itt(bhs);
		login->cmd_sn = bhs_cmd_sn(bhs);
		login->negotiation.joins = login->tsih != 0;
	}
	if (++login->requests > LOGIN_MAX_REQUESTS)
		return LOGIN_INITIATOR_ERROR;
	if (bhs[BHS_VERSION_MIN] > 0)
		return LOGIN_UNSUPPORTED_VERSION;
	if (memcmp(login->isid, bhs + BHS_ISID, sizeof login->isid) != 0 ||
	    login->tsih != get_be16(bhs + BHS_TSIH) || login->cid != get_be16(bhs + BHS_CID) ||
	    login->itt != bhs_itt(bhs) || login->cmd_sn != bhs_cmd_sn(bhs))
		return LOGIN_INITIATOR_ERROR;
	return flags_check(login, bhs);
}

static enum iscsi_login_status auth_choose(struct iscsi_login *login)
{
	struct iscsi_negotiation *negotiation = &login->negotiation;

	if (!negotiation->auth_methods[0] || login->auth)
		return LOGIN_SUCCESS;
	login->auth = iscsi_auth_find(negotiation->auth_methods, login->env);
	if (!login->auth)
		return LOGIN_AUTHENTICATION_FAILED;
	iscsi_text_add(&login->out, "AuthMethod", login->auth->name);
	return LOGIN_SUCCESS;
}

/* One key; 0 or -errno as iscsi_params_offer. */
static int key_take(struct iscsi_login *login, const char *key, const char *value)
{
	int r;

	if (login->stage == STAGE_SECURITY && login->auth) {
		r = login->auth->offer(login, key, value);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	/* The exchange begins when the method has been agreed on. */
	if (login->stage == STAGE_SECURITY && strncmp(key, "CHAP_", 5) == 0)
		return -EPROTO;
	return iscsi_params_offer(&login->negotiation, login->stage, key, value, &login->out);
}

/* Takes the keys of one whole text. */
static enum iscsi_login_status keys_take(struct iscsi_login *login)
{
	const char *end = login->in + login->in_bytes;
	char *cursor = login->in, *key, *value;
	int r;

	while ((r = iscsi_text_next(&cursor, end, &key, &value)) > 0) {
		r = key_take(login, key, value);
		if (r < 0)
			break;
	}
	login->in_bytes = 0;
	if (r == -EOPNOTSUPP)
		return LOGIN_SESSION_TYPE_UNSUPPORTED;
	return r < 0 ? LOGIN_INITIATOR_ERROR : LOGIN_SUCCESS;
}

/* The first text is complete: is everybody named, and does the server let them in? */
static enum iscsi_login_status identify(struct iscsi_login *login)
{
	const struct iscsi_negotiation *negotiation = &login->negotiation;
	enum iscsi_login_status status;

	if (login->identified)
		return LOGIN_SUCCESS;
	if (!negotiation->initiator_name[0])
		return LOGIN_MISSING_PARAMETER;
	if (!negotiation->discovery && !negotiation->target_name[0])
		return LOGIN_MISSING_PARAMETER;
	status = login->env->admit(login->env->arg, login, login->moved_to);
	login->identified = status == LOGIN_SUCCESS;
	return status;
}

static bool auth_content(const struct iscsi_login *login)
{
	return login->auth ? login->auth->done(login) : !login->env->auth_required;
}

/* Method, exchange, and what the server thinks of the outcome. */
static enum iscsi_login_status authenticate(struct iscsi_login *login)
{
	const struct iscsi_auth_ops *chosen = login->auth;
	const struct iscsi_login_env *env = login->env;
	enum iscsi_login_status status = auth_choose(login);

	if (status == LOGIN_SUCCESS && chosen && login->stage == STAGE_SECURITY)
		status = chosen->step(login, &login->out);
	if (status != LOGIN_SUCCESS)
		return status;
	if (!auth_content(login))
		return login->stage == STAGE_SECURITY ? LOGIN_SUCCESS : LOGIN_AUTHENTICATION_FAILED;
	return env->authorise ? env->authorise(env->arg, login) : LOGIN_SUCCESS;
}

/* Everything the text of a request leads to, answers included. */
static enum iscsi_login_status text_take(struct iscsi_login *login)
{
	enum iscsi_login_status status;

	login->out.bytes = 0;
	login->out_sent = 0;
	status = keys_take(login);
	if (status == LOGIN_SUCCESS)
		status = identify(login);
	if (status == LOGIN_SUCCESS)
		status = authenticate(login);
	if (status != LOGIN_SUCCESS)
		return status;
	iscsi_params_close(&login->negotiation, &login->out);
	if (!login->tag_sent && !login->negotiation.discovery)
		iscsi_text_add_number(&login->out, "TargetPortalGroupTag", login->env->group_tag);
	login->tag_sent = true;
	if (login->stage == STAGE_OPERATIONAL)
		iscsi_params_declare(&login->negotiation, &login->out);
	return login->out.overflow ? LOGIN_INITIATOR_ERROR : LOGIN_SUCCESS;
}

/* Sends what fits of the answer; grants the transition with its last part only. */
static enum iscsi_login_verdict answer_finish(struct iscsi_login *login, const uint8_t *bhs,
					      uint8_t answer[BHS_BYTES], const char **ret_text,
					      uint32_t *ret_text_bytes)
{
	size_t left = login->out.bytes - login->out_sent;
	uint8_t flags = (uint8_t)(login->stage << CSG_SHIFT);
	bool transit = bhs[BHS_FLAGS] & FLAG_TRANSIT;
	enum iscsi_stage next = (enum iscsi_stage)(bhs[BHS_FLAGS] & STAGE_MASK);
	enum iscsi_login_verdict verdict = LOGIN_CONTINUE;

	*ret_text = login->out.data + login->out_sent;
	if (left > ISCSI_DEFAULT_MRDSL) {
		left = ISCSI_DEFAULT_MRDSL;
		flags |= FLAG_CONTINUE;
	} else if (transit && auth_content(login)) {
		flags |= (uint8_t)(FLAG_TRANSIT | next);
		login->stage = next;
		verdict = next == STAGE_FULL_FEATURE ? LOGIN_COMPLETE : LOGIN_CONTINUE;
	}
	login->out_sent += left;
	*ret_text_bytes = (uint32_t)left;
	answer_begin(login, answer);
	answer[BHS_FLAGS] = flags;
	return verdict;
}

static enum iscsi_login_verdict refused(struct iscsi_login *login, enum iscsi_login_status status,
					uint8_t answer[BHS_BYTES], const char **ret_text,
					uint32_t *ret_text_bytes)
{
	login->status = status;
	login->out.bytes = 0;
	login->out.overflow = false;
	if (status == LOGIN_MOVED_TEMPORARILY)
		iscsi_text_add(&login->out, "TargetAddress", login->moved_to);
	if (status == LOGIN_AUTHENTICATION_FAILED && !login->auth)
		iscsi_text_add(&login->out, "AuthMethod", "Reject");
	login->tsih = 0;
	iscsi_login_refuse(login, status, answer);
	*ret_text = login->out.data;
	*ret_text_bytes = (uint32_t)login->out.bytes;
	return LOGIN_REFUSED;
}

enum iscsi_login_verdict iscsi_login_request(struct iscsi_login *login, const uint8_t *bhs,
					     uint8_t answer[BHS_BYTES], const char **ret_text,
					     uint32_t *ret_text_bytes)
{
	enum iscsi_login_status status = header_check(login, bhs);

	login->in_bytes += bhs_data_bytes(bhs);
	if (status != LOGIN_SUCCESS)
		return refused(login, status, answer, ret_text, ret_text_bytes);
	if (bhs[BHS_FLAGS] & FLAG_CONTINUE) {
		*ret_text = login->out.data;
		*ret_text_bytes = 0;
		answer_begin(login, answer);
		answer[BHS_FLAGS] = (uint8_t)(login->stage << CSG_SHIFT);
		return LOGIN_CONTINUE;
	}
	if (login->out_sent == login->out.bytes || login->in_bytes > 0) {
		status = text_take(login);
		if (status != LOGIN_SUCCESS)
			return refused(login, status, answer, ret_text, ret_text_bytes);
	}
	return answer_finish(login, bhs, answer, ret_text, ret_text_bytes);
}
