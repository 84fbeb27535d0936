/* SPDX-License-Identifier: MIT
 *
 * The login phase of one connection (RFC 7143 section 6) as a state machine.
 *
 * Pure: one Login Request in, one Login Response out with a verdict.  Sessions, sockets and
 * sequence numbers of the connection are the caller's; what only the server knows (does the
 * target exist, is the login to be redirected) is asked through `admit`.
 *
 * Authentication is a table of methods (login_auth.c): None and CHAP.
 */
#ifndef SANLAB_TARGET_ISCSI_LOGIN_H
#define SANLAB_TARGET_ISCSI_LOGIN_H

#include "target/iscsi/chap.h"
#include "target/iscsi/params.h"

enum {
	LOGIN_TEXT_MAX_BYTES = 16384, /* of one negotiation text, over all its PDUs */
	LOGIN_ANSWER_MAX_BYTES = 32768,
	LOGIN_MAX_REQUESTS = 32, /* fewer than TX_SLOTS: answers may all wait */
	LOGIN_ADDRESS_BYTES = 256,
};

enum iscsi_login_verdict {
	LOGIN_CONTINUE, /* send the answer, wait for the next request */
	LOGIN_COMPLETE, /* make the session, then send the answer with its TSIH */
	LOGIN_REFUSED,	/* send the answer, then close; `status` tells why */
};

struct iscsi_login;

struct iscsi_login_env {
	void *arg;
	uint16_t group_tag;
	bool auth_required;	     /* AuthMethod=None is not enough; `admit` may set it */
	const struct chap_env *chap; /* NULL: CHAP is not to be had */
	/* Who it is and what it wants is known: LOGIN_SUCCESS, LOGIN_MOVED_TEMPORARILY with the
	 * TargetAddress in ADDRESS, or the status to refuse with. */
	enum iscsi_login_status (*admit)(void *arg, const struct iscsi_login *login,
					 char address[LOGIN_ADDRESS_BYTES]);
	/* Authentication has come to a good end (iscsi_login_user): may the initiator go on?
	 * NULL: yes.  Asked once a text. */
	enum iscsi_login_status (*authorise)(void *arg, const struct iscsi_login *login);
};

struct iscsi_auth_ops {
	const char *name;
	/* Takes one key of the exchange: 1 when it was one of the method's, else 0; -EEXIST. */
	int (*offer)(struct iscsi_login *login, const char *key, const char *value);
	/* All keys of a text have been taken: answers them. */
	enum iscsi_login_status (*step)(struct iscsi_login *login, struct iscsi_text *out);
	/* Has the initiator proved who it is?  Asked when a request has been read to its end. */
	bool (*done)(const struct iscsi_login *login);
};

struct iscsi_login {
	const struct iscsi_login_env *env;
	struct iscsi_negotiation negotiation;
	enum iscsi_stage stage;
	bool started;	 /* the first request has come */
	bool identified; /* names are complete and the server has admitted them */
	bool tag_sent;
	const struct iscsi_auth_ops *auth; /* chosen method */
	struct chap chap;
	uint8_t isid[6];
	uint16_t tsih, cid;
	uint32_t itt, cmd_sn;
	unsigned requests;
	enum iscsi_login_status status;
	char moved_to[LOGIN_ADDRESS_BYTES];
	size_t in_bytes;
	char in[LOGIN_TEXT_MAX_BYTES + 1];
	struct iscsi_text out;
	size_t out_sent;
	char out_data[LOGIN_ANSWER_MAX_BYTES];
};

void iscsi_login_init(struct iscsi_login *login, const struct iscsi_login_env *env);

/* Where the next request's data segment goes (DATA_BYTES of it); NULL: too much text. */
uint8_t *iscsi_login_room(struct iscsi_login *login, uint32_t data_bytes);

/* Takes the request BHS, whose data segment has been put where iscsi_login_room said.  ANSWER gets
 * a Login Response without sequence numbers; its text (*RET_TEXT, inside LOGIN) is at most 8192
 * bytes and valid until the next call. */
enum iscsi_login_verdict iscsi_login_request(struct iscsi_login *login, const uint8_t *bhs,
					     uint8_t answer[BHS_BYTES], const char **ret_text,
					     uint32_t *ret_text_bytes);
/* A refusal by the caller, before or after the machine has run. */
void iscsi_login_refuse(const struct iscsi_login *login, enum iscsi_login_status status,
			uint8_t answer[BHS_BYTES]);

/* The user the initiator has proved to be; NULL: nobody. */
const char *iscsi_login_user(const struct iscsi_login *login);

/* login_auth.c: picks the first method of the initiator's LIST that we have and want; NULL: none.
 * Where nothing requires authentication None is wanted, and CHAP only of an initiator that offers
 * nothing else: one without credentials may offer both. */
const struct iscsi_auth_ops *iscsi_auth_find(const char *list, const struct iscsi_login_env *env);

#endif
