/* SPDX-License-Identifier: MIT
 *
 * User-facing failures: what went wrong, where, and what to do about it.
 *
 * Functions return 0 or a negative errno; those whose failure a person reads also fill a
 * `struct err` (may be NULL).  Ownership: plain storage of the caller.  Threading: none.
 */
#ifndef SANLAB_BASE_ERR_H
#define SANLAB_BASE_ERR_H

/* Exit codes of the command, DESIGN section 5. */
enum exit_code {
	EXIT_PASS = 0,
	EXIT_EXPECTATION = 1,
	EXIT_USAGE = 2,
	EXIT_ENVIRONMENT = 3,
	EXIT_INTERNAL = 4,
};

struct err {
	int code;	 /* negative errno; 0 while unset */
	char what[400];	 /* "cannot listen on 127.0.0.1:3260: address already in use" */
	char where[200]; /* "quickstart.yaml:12:5", a path, a portal; may be empty */
	char hint[300];	 /* the remedy; may be empty */
};

/* Fills ERR (if not NULL; an error already set is kept: the first cause counts) and returns CODE.
 */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void err_where(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void err_hint(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "sanlab: where: what" and "hint: ..." to stderr. */
void err_print(const struct err *err);

#endif
