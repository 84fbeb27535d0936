/* SPDX-License-Identifier: MIT
 *
 * The file of a database on a volume: where its parts lie, its header, and how it is created,
 * attached and detached.
 *
 *   page 0 header | page 1 its shadow | pages 2.. tree | flush map | [log: checkpoint, ring]
 *
 * Header, 4 KiB, big-endian, in both pages: 0 CRC32C, 4 magic "ESEH", 8 version (4), 12 state (4),
 * 16 creation UUID (16), 32 database (4), 36 flags (4), 40 seed, 48 sequence, 56 pages,
 * 64 rules: initial pages, 72 record bytes (4), 76 fan-out (4), 80 children of a node (4), 84 zero
 * (4), 88 share of full leaves in 2^-32; 96 log signature, 104 lgpos of the attach, 112 clean
 * dbtime, 120 seed of the rules.  The shadow is written first, then the header; the valid
 * one with the higher sequence counts.
 *
 * A volume that reads as zeros needs nothing but the header: pages never flushed stand for their
 * initial images.  On any other volume create writes all of them, and the flush map, in sequential
 * I/Os of 256 KiB.
 *
 * Threading: the loop's thread.  Callbacks may come from within the call.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_FILE_H
#define SANLAB_HARNESS_WORKLOAD_ESE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/workload/ese/ese_image.h"
#include "harness/workload/ese/ese_pager.h"

/* Where everything is, in bytes from the volume's beginning. */
struct ese_layout {
	uint64_t pages;		/* that the file may have, header included */
	uint64_t initial_pages; /* in use when it is created, header included */
	uint64_t map_offset_bytes;
	/* All 0 when the log lies on another volume (ese_layout_log). */
	uint64_t checkpoint_offset_bytes, ring_offset_bytes;
	uint32_t log_files;
	uint64_t end_bytes; /* of what is used of the volume */
};

enum {
	ESE_CHECKPOINT_AREA_BYTES = 64 << 10,
	ESE_LOG_RING_ALIGN_BYTES = 1 << 20,
};

/* A database that may grow to DATABASE_BYTES (0: what the volume has room for) with LOG_FILES of
 * 1 MiB behind it (0: the log lies elsewhere).  -ENOSPC with the reason in ERR. */
int ese_layout_database(uint64_t volume_bytes, uint64_t database_bytes, uint64_t initial_pages,
			uint32_t log_files, struct ese_layout *ret_layout, struct err *err);
/* A log alone from BASE_BYTES on; only the log's fields and end_bytes are set. */
int ese_layout_log(uint64_t volume_bytes, uint64_t base_bytes, uint32_t log_files,
		   struct ese_layout *ret_layout, struct err *err);

enum ese_file_state { ESE_FILE_CREATING, ESE_FILE_DIRTY, ESE_FILE_CLEAN };

struct ese_file_header {
	enum ese_file_state state;
	struct ese_identity identity;
	bool sparse; /* created on zeros: what was never flushed reads as zeros */
	uint64_t sequence;
	uint64_t pages;
	struct ese_rules_config rules; /* what initial images follow from */
	uint64_t log_signature;
	uint64_t attach_lgpos;
	uint64_t clean_dbtime;
};

enum { ESE_FILE_HEADER_BYTES = 4096 };

bool ese_file_same_rules(const struct ese_rules_config *a, const struct ese_rules_config *b);
void ese_file_header_encode(const struct ese_file_header *header, void *buf);
/* -ENOENT: no header; -EBADMSG: a damaged one. */
int ese_file_header_decode(const void *buf, struct ese_file_header *ret_header);

struct ese_file_config {
	struct loop *loop;
	struct io_layer *layer;
	struct ese_layout layout;
	const struct ese_image_rules *rules;
	bool content;
	bool known_zero; /* the volume reads as zeros where nothing was written */
	struct stream *fill_stream, *map_stream; /* may be NULL */
	/* For the pager. */
	bool fua;
	const char *host, *volume;
	struct workload_check *check;
	uint64_t *first_writes;
	void (*mismatch)(void *arg, const struct mismatch *mismatch);
	void *arg;
};

typedef void (*ese_file_fn)(void *arg, int status);

struct ese_file;

int ese_file_new(const struct ese_file_config *config, struct ese_file **ret_file);
/* Nothing may be in flight.  NULL is fine; returns NULL. */
struct ese_file *ese_file_free(struct ese_file *file);

/* Makes a new, clean database over whatever is there and leaves it detached. */
void ese_file_create(struct ese_file *file, const struct ese_identity *identity,
		     uint64_t log_signature, ese_file_fn done, void *arg);
/* Reads the header and, unless a fresh database needs none, the flush map.  -ENOENT: there is no
 * database; -EUCLEAN: both copies are damaged; -EMEDIUMTYPE: one of other rules or sizes.  Done
 * well, the pager works, and the header says `state`: CLEAN, or DIRTY: recovery is needed
 * (ese_pager_recovering first).  The header is not changed yet. */
void ese_file_attach(struct ese_file *file, ese_file_fn done, void *arg);
/* Marks the database dirty (in use from LGPOS on), before the first page is written. */
void ese_file_use(struct ese_file *file, uint64_t lgpos, ese_file_fn done, void *arg);
/* Writes the flush map's changes: before each checkpoint. */
void ese_file_persist_map(struct ese_file *file, ese_file_fn done, void *arg);
/* All pages are written: flush map, then the header, clean. */
void ese_file_detach(struct ese_file *file, uint64_t dbtime, ese_file_fn done, void *arg);

struct ese_pager *ese_file_pager(struct ese_file *file); /* NULL before attach */
const struct ese_file_header *ese_file_header(const struct ese_file *file);
double ese_file_progress(const struct ese_file *file); /* 0..1 of create and attach */

#endif
