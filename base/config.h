/* SPDX-License-Identifier: MIT
 *
 * YAML configuration against declarative schemas: positions, units, ranges, near misses, all
 * errors in one go.
 *
 * A room describes its part of the file as a table of `struct cfg_field` next to the code that
 * uses it; harness/lab composes them.  Loading has three steps: cfg_open parses the file into a
 * tree (every node keeps line and column), cfg_set applies `--set key.path=value` overrides, and
 * cfg_decode fills a C structure.  Cross-checks then add their own errors with cfg_error_at,
 * naming the place of any decoded field by its address.
 *
 * Ownership: everything decoded (strings, lists, nested structures) belongs to the cfg and lives
 * until cfg_free.  Threading: one thread at a time.
 * Units: sizes in bytes (`64KiB`, `1 GiB`, `512`; also kB/MB/GB decimal; a bare `64k` counts 1024),
 * durations in ns (`10ms`, `5 s`, `2m`, `1h`, `250us`; only zero needs no unit), rates per second
 * (`200/s`), percentages as a fraction (`5%` gives 0.05).
 * A strict part of YAML is read: one document, no anchors, aliases, tags or duplicate keys.
 */
#ifndef SANLAB_BASE_CONFIG_H
#define SANLAB_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct cfg;
struct cfg_schema;

enum cfg_type {
	CFG_STRING,   /* const char * */
	CFG_BOOL,     /* bool */
	CFG_UINT,     /* uint64_t, within [min, max] */
	CFG_SIZE,     /* uint64_t bytes */
	CFG_DURATION, /* uint64_t ns */
	CFG_PERCENT,  /* double, 0.05 for 5% (min and max in whole percent) */
	CFG_REAL,     /* double, plain number */
	CFG_ENUM,     /* int, index into `names` */
	CFG_PORTAL,   /* struct cfg_portal, `127.0.0.1:3260`, `[::1]:3260`; numeric only */
	CFG_STRUCT,   /* nested mapping, `sub` */
	CFG_LIST,     /* sequence of mappings of `sub`: struct cfg_list, items of sub->size */
	CFG_STRINGS,  /* sequence of scalars: struct cfg_list of const char * */
	CFG_UINTS,    /* sequence of numbers, each within [min, max]: struct cfg_list of uint64_t */
	CFG_PORTALS,  /* sequence of portals: struct cfg_list of struct cfg_portal */
	CFG_UNION,    /* a mapping or scalar left raw: struct cfg_raw, decoded later by the owner */
};

struct cfg_portal {
	char text[64]; /* as shown: "127.0.0.1:3261", "[::1]:3260" */
	char host[48]; /* numeric, without brackets */
	uint16_t port;
	bool set;
};

struct cfg_list {
	void *items;
	size_t count;
};

struct cfg_raw {
	const void *node; /* NULL when absent; for cfg_decode_raw */
};

struct cfg_field {
	const char *key;
	enum cfg_type type;
	size_t offset;	    /* offsetof the destination */
	const char *preset; /* default, written as in the file; NULL: zeroed when absent */
	bool required;
	double min, max; /* in the field's unit (bytes, ns); both 0: no limit but the type's */
	const char *const *names; /* CFG_ENUM: NULL-terminated */
	const struct cfg_schema *sub;
	bool urls;	  /* CFG_STRINGS: URLs, whose passwords are never written out again */
	const char *help; /* one line; the reference page is made of these */
};

struct cfg_schema {
	const char *name;
	size_t size; /* sizeof the C structure */
	const struct cfg_field *fields;
	size_t field_count;
	/* Called with each mapping before it is decoded: the place for cfg_supply.  May be NULL. */
	void (*expand)(struct cfg *cfg, const struct cfg_raw *mapping);
	/* Another schema for the same place and what chooses it ("engine: ese"): a key of it is
	 * told apart from one that nobody knows.  May be NULL. */
	const struct cfg_schema *sibling;
	const char *sibling_name;
};

/* Parses FILE.  -ENOENT/-EACCES/... with ERR filled when it cannot be read; syntax errors are
 * collected like all others (see cfg_error_count) and leave an empty tree. */
int cfg_open(const char *file, struct cfg **ret_cfg, struct err *err);
/* Parses TEXT as if it were the file NAME (tests, fuzzing). */
int cfg_parse(const char *name, const char *text, size_t size, struct cfg **ret_cfg);
struct cfg *cfg_free(struct cfg *cfg);
/* The file as it was named. */
const char *cfg_name(const struct cfg *cfg);

/* ASSIGNMENT is `group.portal=127.0.0.1:4260`; list elements by index or by their `name:`
 * (`group.volumes.db1.size=2GiB`).  Missing mappings on the way are made.  Bad syntax or a path
 * through a scalar is collected as an error at "--set". */
void cfg_set(struct cfg *cfg, const char *assignment);

/* Decodes the root mapping into OUT (zeroed first).  Errors are collected, decoding goes on. */
void cfg_decode(struct cfg *cfg, const struct cfg_schema *schema, void *out);
/* Decodes a CFG_UNION part: the same, for a node kept raw.  A key `type` is taken as what chose
 * SCHEMA and need not be in it.  cfg_emit later writes the part by SCHEMA. */
void cfg_decode_raw(struct cfg *cfg, const struct cfg_raw *raw, const struct cfg_schema *schema,
		    void *out);
/* For unions: the scalar text of a raw node (NULL if a mapping), the key (NULL in a list) and
 * value node of its INDEX-th entry (false at the end). */
const char *cfg_raw_scalar(const struct cfg_raw *raw);
bool cfg_raw_entry(const struct cfg_raw *raw, size_t index, const char **ret_key,
		   struct cfg_raw *ret_value);
/* The value at PATH ("drives.count") below MAPPING; false: there is none. */
bool cfg_raw_find(const struct cfg_raw *mapping, const char *path, struct cfg_raw *ret_value);
/* Puts the scalar TEXT at PATH below MAPPING unless something is there: what one key stands for.
 * Errors about it point at BECAUSE, that key's value; cfg_emit writes it out like any other. */
void cfg_supply(struct cfg *cfg, const struct cfg_raw *mapping, const char *path, const char *text,
		const struct cfg_raw *because);
void cfg_error_raw(struct cfg *cfg, const struct cfg_raw *raw, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Parses one scalar with the rules of TYPE (CFG_SIZE, CFG_DURATION, CFG_PERCENT, CFG_REAL,
 * CFG_UINT, CFG_PORTAL) into OUT; -EINVAL with a message in WHY. */
int cfg_parse_scalar(enum cfg_type type, const char *text, void *out, char *why, size_t why_size);

/* True when the file (or --set) gave the field itself rather than its default.  A structure has
 * the address of its first field: ask for a field. */
bool cfg_given(const struct cfg *cfg, const void *field);
/* False when decoding has reported FIELD (a wrong value, or required and missing): cross-checks
 * then stay silent instead of adding what only follows from it. */
bool cfg_valid(const struct cfg *cfg, const void *field);
/* Adds an error at the place FIELD (an address inside a decoded structure) was read from; the
 * nearest enclosing mapping's place when it was absent. */
void cfg_error_at(struct cfg *cfg, const void *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Errors unless the string at NAME is 1 to 32 characters of a-z, 0-9 and '-': names become parts of
 * iSCSI names (RFC 3722), of file names and of --set paths. */
void cfg_check_name(struct cfg *cfg, const char *const *name);
/* Appends a remedy to the last error. */
void cfg_hint(struct cfg *cfg, const char *format, ...) __attribute__((format(printf, 2, 3)));

size_t cfg_error_count(const struct cfg *cfg);
/* "lab.yaml:12:5: unknown key 'protal' in group; did you mean 'portal'?", one a line, in the
 * order of the file. */
void cfg_print_errors(const struct cfg *cfg, FILE *to);

/* Writes the tree (after --set) with every default filled in, as YAML. */
int cfg_emit(const struct cfg *cfg, const struct cfg_schema *schema, FILE *to);

/* Writes the reference of SCHEMA: one entry a key, PREFIX before each ("group."), with type,
 * limits, default and help.  A CFG_UNION's `sub` is for this only. */
void cfg_print_reference(const struct cfg_schema *schema, const char *prefix, FILE *to);

/* The entry of NAMES (NULL-terminated) most like WORD, or NULL when nothing is near. */
const char *cfg_nearest(const char *word, const char *const *names);

#endif
