/* SPDX-License-Identifier: MIT
 *
 * Reading and keeping CHAP secrets.
 */
#include "target/iscsi/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"

enum { FILE_MAX_BYTES = 1024 * 1024 };

struct chap_secrets {
	size_t count;
	struct chap_secret secret[];
};

struct chap_secrets *chap_secrets_free(struct chap_secrets *secrets)
{
	if (!secrets)
		return NULL;
	explicit_bzero(secrets->secret, secrets->count * sizeof secrets->secret[0]);
	free(secrets);
	return NULL;
}

const struct chap_secret *chap_secrets_find(const struct chap_secrets *secrets, const char *user)
{
	for (size_t i = 0; secrets && i < secrets->count; i++) {
		if (strcmp(secrets->secret[i].user, user) == 0)
			return &secrets->secret[i];
	}
	return NULL;
}

int chap_secrets_change(struct chap_secrets *secrets, const char *user, bool changed)
{
	for (size_t i = 0; secrets && i < secrets->count; i++) {
		struct chap_secret *secret = &secrets->secret[i];

		if (strcmp(secret->user, user) != 0)
			continue;
		if (secret->changed == changed)
			return -EALREADY;
		secret->changed = changed;
		for (size_t at = 0; at < secret->size; at++)
			secret->bytes[at] ^= 0x55;
		return 0;
	}
	return -ENOENT;
}

int chap_secrets_is_shared(const struct chap_secrets *secrets, const char *user)
{
	const struct chap_secret *own = chap_secrets_find(secrets, user);

	for (size_t i = 0; own && i < secrets->count; i++) {
		const struct chap_secret *other = &secrets->secret[i];

		if (other != own && other->size == own->size &&
		    memcmp(other->bytes, own->bytes, own->size) == 0)
			return 1;
	}
	return 0;
}

/* ---- lines ---- */

/* One line [AT, END); 1: a secret, 0: nothing in it, -EINVAL with WHY. */
static int line_parse(const char *at, const char *end, struct chap_secret *secret,
		      const char **ret_why)
{
	size_t user_bytes = 0;

	if (at < end && end[-1] == '\r')
		end--;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (at == end || *at == '#')
		return 0;
	while (at + user_bytes < end && at[user_bytes] != ' ' && at[user_bytes] != '\t')
		user_bytes++;
	*ret_why = "the user's name is too long";
	if (user_bytes >= sizeof secret->user)
		return -EINVAL;
	memcpy(secret->user, at, user_bytes);
	secret->user[user_bytes] = '\0';
	at += user_bytes;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	secret->size = (size_t)(end - at);
	*ret_why = "a line is a user, blanks and a secret";
	if (secret->size == 0 || memchr(secret->user, '\0', user_bytes))
		return -EINVAL;
	*ret_why = "the secret is longer than 255 bytes";
	if (secret->size > sizeof secret->bytes)
		return -EINVAL;
	memcpy(secret->bytes, at, secret->size);
	return 1;
}

static int line_add(struct chap_secrets *secrets, const char *name, unsigned line, const char *at,
		    const char *end, struct err *err)
{
	struct chap_secret *secret = &secrets->secret[secrets->count];
	const char *why = NULL;
	int r = line_parse(at, end, secret, &why);

	if (r == 1 && secrets->count == CHAP_USERS_MAX) {
		r = -EINVAL;
		why = "there are too many users";
	} else if (r == 1 && chap_secrets_find(secrets, secret->user)) {
		r = -EINVAL;
		why = "that user has a secret already";
	}
	if (r < 0) {
		err_set(err, r, "CHAP secrets: %s", why);
		err_where(err, "%s:%u", name, line);
		return r;
	}
	if (r == 1 && secret->size < CHAP_SECRET_ADVISED_BYTES)
		log_warn("%s:%u: the CHAP secret has fewer than %d bytes; RFC 7143 advises 96 bits",
			 name, line, CHAP_SECRET_ADVISED_BYTES);
	secrets->count += (size_t)r;
	return 0;
}

int chap_secrets_parse(const char *name, const char *text, size_t size,
		       struct chap_secrets **ret_secrets, struct err *err)
{
	const char *end = text + size;
	struct chap_secrets *secrets;
	size_t lines = 1;
	unsigned line = 1;

	for (const char *at = text; at < end; at++)
		lines += *at == '\n';
	/* One more than can be kept: the line under way. */
	lines = MIN_OF(lines, (size_t)CHAP_USERS_MAX) + 1;
	secrets = calloc(1, sizeof *secrets + lines * sizeof secrets->secret[0]);
	if (!secrets)
		return err_set(err, -ENOMEM, "out of memory");
	for (const char *at = text; at < end; line++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		int r = line_add(secrets, name, line, at, stop ? stop : end, err);

		if (r < 0) {
			secrets->count++; /* what the wrong line held goes too */
			chap_secrets_free(secrets);
			return r;
		}
		at = stop ? stop + 1 : end;
	}
	*ret_secrets = secrets;
	return 0;
}

/* ---- the file ---- */

static int file_check(int fd, const char *file, size_t *ret_bytes, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot look at %s", file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EPERM, "CHAP secrets: %s is not a regular file", file);
	if (st.st_uid != geteuid()) {
		err_set(err, -EPERM, "CHAP secrets: %s belongs to another user", file);
		err_hint(err, "the user who runs the target must own it");
		return -EPERM;
	}
	if (st.st_mode & 0177) {
		err_set(err, -EPERM, "CHAP secrets: %s has mode %04o, others could read or run it",
			file, (unsigned)st.st_mode & 07777);
		err_hint(err, "chmod 0600 %s", file);
		return -EPERM;
	}
	if (st.st_size > FILE_MAX_BYTES)
		return err_set(err, -EFBIG, "CHAP secrets: %s is longer than 1 MiB", file);
	*ret_bytes = (size_t)st.st_size;
	return 0;
}

int chap_secrets_load(const char *file, struct chap_secrets **ret_secrets, struct err *err)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r;
	size_t bytes = 0, got = 0;
	char *text = NULL;

	if (fd < 0) {
		r = -errno;
		return err_set(err, r == -EINVAL ? -EIO : r, "CHAP secrets: cannot open %s: %s",
			       file, strerror(-r));
	}
	r = file_check(fd, file, &bytes, err);
	if (r == 0) {
		text = malloc(bytes + 1);
		r = text ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	while (r == 0 && got < bytes) {
		ssize_t n = read(fd, text + got, bytes - got);

		if (n < 0 && errno != EINTR)
			r = err_set(err, -EIO, "CHAP secrets: cannot read %s: %s", file,
				    strerror(errno));
		if (n == 0)
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (r == 0)
		r = chap_secrets_parse(file, text, got, ret_secrets, err);
	if (text)
		explicit_bzero(text, bytes);
	free(text);
	return r;
}
