/* SPDX-License-Identifier: MIT
 *
 * CHAP (RFC 1994, RFC 7143 12.1.3) from the target's side, one way and mutual, as a state machine.
 *
 *   initiator                          target
 *   CHAP_A=8,7,6,5                ->
 *                                 <-   CHAP_A=8  CHAP_I=17  CHAP_C=0x...
 *   CHAP_N=user  CHAP_R=0x...     ->
 *   [CHAP_I=n  CHAP_C=0x...]
 *                                 <-   [CHAP_N=name  CHAP_R=0x...]
 *
 * Pure: secrets and randomness come from its environment.  A key is only taken; what all keys of a
 * text together mean is decided by chap_step.
 *
 * What is refused beyond a wrong response: our own challenge sent back (on this connection or from
 * another one of the server), and our own name as that of the initiator, whose responses could be
 * ones that we have given.  Secrets are never copied into text, logs or documents.
 */
#ifndef SANLAB_TARGET_ISCSI_CHAP_H
#define SANLAB_TARGET_ISCSI_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/iscsi/params.h"
#include "target/iscsi/secrets.h"

/* Values of CHAP_A (IANA's PPP authentication algorithms). */
enum chap_algorithm { CHAP_MD5 = 5, CHAP_SHA1 = 6, CHAP_SHA256 = 7, CHAP_SHA3_256 = 8 };

enum {
	CHAP_DIGEST_MAX_BYTES = 32,
	CHAP_CHALLENGE_MAX_BYTES = 1024, /* RFC 7143 12.1.3 */
};

struct chap_env {
	void *arg;
	const struct chap_secrets *secrets;
	const char *mutual_user; /* who we are to initiators that ask; NULL: nobody */
	/* 0 or -errno. */
	int (*random)(void *arg, uint8_t *to, size_t bytes);
	/* Has the server just sent CHALLENGE, on any connection? */
	bool (*is_ours)(void *arg, const uint8_t *challenge, size_t bytes);
};

enum chap_state { CHAP_WANT_ALGORITHM, CHAP_WANT_RESPONSE, CHAP_PROVEN, CHAP_FAILED };

struct chap {
	const struct chap_env *env;
	enum chap_state state;
	int algorithm;
	uint8_t id;
	uint8_t challenge[CHAP_DIGEST_MAX_BYTES];
	size_t challenge_bytes;
	/* the keys of the text under way */
	unsigned got;
	bool wrong; /* a value that cannot be right */
	char algorithms[ISCSI_VALUE_MAX_BYTES + 1];
	char user[ISCSI_VALUE_MAX_BYTES + 1]; /* proven in CHAP_PROVEN */
	uint8_t response[CHAP_DIGEST_MAX_BYTES];
	size_t response_bytes;
	uint8_t their_id;
	uint8_t their_challenge[CHAP_CHALLENGE_MAX_BYTES];
	size_t their_challenge_bytes;
};

void chap_init(struct chap *chap, const struct chap_env *env);
/* 1: KEY was one of CHAP's and has been taken; 0: it is none; -EEXIST: it came before. */
int chap_offer(struct chap *chap, const char *key, const char *value);
/* The text is complete: appends the answer to OUT.  -EACCES: authentication has failed; -EPROTO:
 * these keys are not what the exchange is at; -EIO: no randomness is to be had. */
int chap_step(struct chap *chap, struct iscsi_text *out);

/* chap_digest.c: digest(ID, secret, challenge); 0, or -ENOTSUP for an unknown algorithm. */
size_t chap_digest_bytes(int algorithm); /* 0: unknown */
int chap_digest(int algorithm, uint8_t id, const struct chap_secret *secret,
		const uint8_t *challenge, size_t challenge_bytes,
		uint8_t out[CHAP_DIGEST_MAX_BYTES]);

#endif
