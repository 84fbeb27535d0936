/* SPDX-License-Identifier: MIT
 *
 * The CHAP exchange.
 */
#include "target/iscsi/chap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/iscsi/binary.h"

enum chap_key {
	KEY_A = 1 << 0,
	KEY_N = 1 << 1,
	KEY_R = 1 << 2,
	KEY_I = 1 << 3,
	KEY_C = 1 << 4,
};

void chap_init(struct chap *chap, const struct chap_env *env)
{
	*chap = (struct chap){.env = env, .state = CHAP_WANT_ALGORITHM};
}

/* CHAP_I: a number from 0 to 255, decimal or hexadecimal. */
static bool id_parse(const char *value, uint8_t *ret_id)
{
	bool hex = value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
	const char *digits = hex ? value + 2 : value;
	unsigned long id;

	if (*digits == '\0' ||
	    strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") != strlen(digits))
		return false;
	id = strtoul(digits, NULL, hex ? 16 : 10); /* ULONG_MAX when it is too long */
	if (id > 255)
		return false;
	*ret_id = (uint8_t)id;
	return true;
}

static void value_take(struct chap *chap, enum chap_key key, const char *value)
{
	switch (key) {
	case KEY_A:
		chap->wrong |= snprintf(chap->algorithms, sizeof chap->algorithms, "%s", value) >=
			       (int)sizeof chap->algorithms;
		break;
	case KEY_N:
		chap->wrong |=
		    snprintf(chap->user, sizeof chap->user, "%s", value) >= (int)sizeof chap->user;
		break;
	case KEY_R: /* longer than any digest: 0, which no digest has */
		chap->response_bytes =
		    iscsi_binary_decode(value, chap->response, sizeof chap->response);
		break;
	case KEY_I:
		chap->wrong |= !id_parse(value, &chap->their_id);
		break;
	case KEY_C:
		chap->their_challenge_bytes =
		    iscsi_binary_decode(value, chap->their_challenge, sizeof chap->their_challenge);
		chap->wrong |= chap->their_challenge_bytes == 0;
		break;
	}
}

int chap_offer(struct chap *chap, const char *key, const char *value)
{
	static const struct {
		const char *name;
		enum chap_key key;
	} keys[] = {{"CHAP_A", KEY_A},
		    {"CHAP_N", KEY_N},
		    {"CHAP_R", KEY_R},
		    {"CHAP_I", KEY_I},
		    {"CHAP_C", KEY_C}};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(key, keys[i].name) != 0)
			continue;
		if (chap->got & keys[i].key)
			return -EEXIST;
		chap->got |= keys[i].key;
		value_take(chap, keys[i].key, value);
		return 1;
	}
	return 0;
}

/* The first of the initiator's algorithms that we have; 0: none. */
static int algorithm_choose(const char *list)
{
	const char *at = list;

	while (*at) {
		size_t size = strcspn(at, ",");
		char *end;
		unsigned long number = strtoul(at, &end, 10);

		if (end == at + size && *at >= '0' && *at <= '9' && number <= 255 &&
		    chap_digest_bytes((int)number) > 0)
			return (int)number;
		at += size + (at[size] == ',');
	}
	return 0;
}

/* A fresh identifier and challenge, as long as the digest. */
static int challenge_send(struct chap *chap, struct iscsi_text *out)
{
	char text[2 * CHAP_DIGEST_MAX_BYTES + 3];
	int r;

	chap->algorithm = algorithm_choose(chap->algorithms);
	if (chap->algorithm == 0)
		return -EACCES;
	chap->challenge_bytes = chap_digest_bytes(chap->algorithm);
	r = chap->env->random(chap->env->arg, &chap->id, 1);
	if (r == 0)
		r = chap->env->random(chap->env->arg, chap->challenge, chap->challenge_bytes);
	if (r < 0)
		return -EIO;
	iscsi_binary_encode(chap->challenge, chap->challenge_bytes, text);
	iscsi_text_add_number(out, "CHAP_A", (uint32_t)chap->algorithm);
	iscsi_text_add_number(out, "CHAP_I", chap->id);
	iscsi_text_add(out, "CHAP_C", text);
	chap->state = CHAP_WANT_RESPONSE;
	return 0;
}

/* Takes as long whether and wherever they differ. */
static bool equal_in_constant_time(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	volatile uint8_t differ = 0;

	for (size_t i = 0; i < bytes; i++)
		differ = (uint8_t)(differ | (a[i] ^ b[i]));
	return differ == 0;
}

/* Is the response right?  An unknown user costs the same time as a wrong secret. */
static bool response_check(const struct chap *chap)
{
	static const struct chap_secret nobody = {.size = 16};
	const struct chap_env *env = chap->env;
	const struct chap_secret *secret = chap_secrets_find(env->secrets, chap->user);
	uint8_t right[CHAP_DIGEST_MAX_BYTES];
	bool good = chap->response_bytes == chap->challenge_bytes && !chap->wrong;

	/* Our own name would prove itself with responses that we hand out. */
	if (!secret || (env->mutual_user && strcmp(chap->user, env->mutual_user) == 0)) {
		secret = &nobody;
		good = false;
	}
	if (chap_digest(chap->algorithm, chap->id, secret, chap->challenge, chap->challenge_bytes,
			right) < 0)
		return false;
	return equal_in_constant_time(right, chap->response, chap->challenge_bytes) && good;
}

/* The initiator wants us to prove who we are. */
static int mutual_answer(struct chap *chap, struct iscsi_text *out)
{
	const struct chap_env *env = chap->env;
	const struct chap_secret *secret =
	    env->mutual_user ? chap_secrets_find(env->secrets, env->mutual_user) : NULL;
	uint8_t response[CHAP_DIGEST_MAX_BYTES];
	char text[2 * CHAP_DIGEST_MAX_BYTES + 3];
	bool reflected;

	if (!secret)
		return -EACCES;
	reflected = chap->their_challenge_bytes == chap->challenge_bytes &&
		    memcmp(chap->their_challenge, chap->challenge, chap->challenge_bytes) == 0;
	if (reflected || env->is_ours(env->arg, chap->their_challenge, chap->their_challenge_bytes))
		return -EACCES;
	if (chap_digest(chap->algorithm, chap->their_id, secret, chap->their_challenge,
			chap->their_challenge_bytes, response) < 0)
		return -EACCES;
	iscsi_binary_encode(response, chap_digest_bytes(chap->algorithm), text);
	iscsi_text_add(out, "CHAP_N", env->mutual_user);
	iscsi_text_add(out, "CHAP_R", text);
	return 0;
}

static int response_take(struct chap *chap, unsigned got, struct iscsi_text *out)
{
	int r = 0;

	if (got != (KEY_N | KEY_R) && got != (KEY_N | KEY_R | KEY_I | KEY_C))
		return -EPROTO;
	if (!response_check(chap))
		r = -EACCES;
	if (r == 0 && (got & KEY_C))
		r = mutual_answer(chap, out);
	if (r == 0)
		chap->state = CHAP_PROVEN;
	return r;
}

int chap_step(struct chap *chap, struct iscsi_text *out)
{
	unsigned got = chap->got;
	int r = -EPROTO;

	chap->got = 0;
	if (got == 0)
		return 0;
	if (chap->state == CHAP_WANT_ALGORITHM && got == KEY_A)
		r = chap->wrong ? -EACCES : challenge_send(chap, out);
	else if (chap->state == CHAP_WANT_RESPONSE)
		r = response_take(chap, got, out);
	if (r < 0)
		chap->state = CHAP_FAILED;
	return r;
}
