/* SPDX-License-Identifier: MIT
 *
 * CHAP secrets from a file of lines "user secret".
 *
 * The file must be ours and nobody else's to read (mode 0600 or 0400).  Empty lines and those that
 * begin with # are skipped; a secret is what follows the first blanks, up to the end of the line.
 * Messages name file and line, never a secret.
 */
#ifndef SANLAB_TARGET_ISCSI_SECRETS_H
#define SANLAB_TARGET_ISCSI_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	CHAP_USER_BYTES = 256, /* with its NUL: a text value */
	CHAP_SECRET_MAX_BYTES = 255,
	CHAP_SECRET_ADVISED_BYTES = 12, /* 96 bits, RFC 7143 9.2.1 */
	CHAP_USERS_MAX = 1024,
};

struct chap_secret {
	char user[CHAP_USER_BYTES];
	uint8_t bytes[CHAP_SECRET_MAX_BYTES];
	size_t size;
	bool changed; /* for a test: not the file's */
};

struct chap_secrets;

/* -EINVAL: a line that is none; -EACCES, -EPERM: others could read it; -ENOENT and the like. */
int chap_secrets_load(const char *file, struct chap_secrets **ret_secrets, struct err *err);
/* The same from TEXT (tests); NAME stands for the file. */
int chap_secrets_parse(const char *name, const char *text, size_t size,
		       struct chap_secrets **ret_secrets, struct err *err);
struct chap_secrets *chap_secrets_free(struct chap_secrets *secrets); /* wipes them */

const struct chap_secret *chap_secrets_find(const struct chap_secrets *secrets, const char *user);
/* The secret of USER is another one from now on (CHANGED), or the file's again.  -ENOENT: no such
 * user; -EALREADY: nothing changes. */
int chap_secrets_change(struct chap_secrets *secrets, const char *user, bool changed);
/* Does any other user have the secret of USER? */
int chap_secrets_is_shared(const struct chap_secrets *secrets, const char *user);

#endif
