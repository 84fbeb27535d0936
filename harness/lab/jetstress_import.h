/* SPDX-License-Identifier: MIT
 *
 * JetstressConfig.xml as a lab file.
 *
 * What an element means here is in one table (jetstress_elements.c).  Each element that has no
 * meaning here, whose value is not as it should be, or that nobody knows, is noted with its line
 * and the reason; elements that say what holds here anyway are taken silently.
 */
#ifndef SANLAB_HARNESS_LAB_JETSTRESS_IMPORT_H
#define SANLAB_HARNESS_LAB_JETSTRESS_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum {
	JETSTRESS_INSTANCES_MAX = 100,
	JETSTRESS_NOTES_MAX = 500,
	JETSTRESS_PATH_BYTES = 260,
	JETSTRESS_ELEMENTS_MAX = 96
};

struct jetstress_note {
	unsigned line; /* 0: of no element */
	char element[160], why[240];
};

struct jetstress_instance {
	char database[JETSTRESS_PATH_BYTES], log[JETSTRESS_PATH_BYTES];
	unsigned line;
};

/* Four latencies in ms; 0: not given. */
struct jetstress_thresholds {
	double avg_db_read, max_db_read, avg_log_write, max_log_write;
};

enum jetstress_test {
	JETSTRESS_PERFORMANCE,
	JETSTRESS_STRESS,
	JETSTRESS_BACKUP,
	JETSTRESS_RECOVERY,
	JETSTRESS_TESTS
};

/* What a configuration says; presets are Jetstress' own. */
struct jetstress_design {
	char version[64], description[400];
	enum jetstress_test test;
	uint64_t duration_s, interval_ms;
	bool verify_checksum, bdm, bdm_in_recovery, suppress_tuning, new_databases;
	double insert, remove, replace, lazy; /* percent */
	uint64_t threads;		      /* 0: not given */
	uint64_t mailboxes, quota_mb, copies, record_pad_bytes;
	double mailbox_iops, throughput_percent, capacity_percent, reserved_percent, margin_iops,
	    preload;
	uint64_t replay_files, latency_errors;
	uint64_t dbm_throttle_ms;
	struct jetstress_thresholds strict, lenient;
	struct jetstress_instance instances[JETSTRESS_INSTANCES_MAX];
	unsigned instance_count, instances_lost;
	bool seen[JETSTRESS_ELEMENTS_MAX]; /* by place in the table */
	struct jetstress_note notes[JETSTRESS_NOTES_MAX];
	unsigned note_count, notes_lost; /* lost: there was no room for them */
};

/* Reads a configuration.  It is large: give it memory of its own. */
int jetstress_read(const char *name, const char *text, size_t size,
		   struct jetstress_design *ret_design, struct err *err);
/* Reads FILE. */
int jetstress_load(const char *file, struct jetstress_design *ret_design, struct err *err);
/* The lab file.  Adds notes about what it had to decide. */
int jetstress_put_lab(struct jetstress_design *design, const char *name, FILE *to);

void jetstress_note(struct jetstress_design *design, unsigned line, const char *element,
		    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Inside: what one element says; jetstress_elements.c. */
struct xml_element;
void jetstress_element(struct jetstress_design *design, const struct xml_element *element,
		       bool begins);

#endif
