/* SPDX-License-Identifier: MIT
 *
 * Jetstress' tests on the servers of a lab: what is done with them, in which order, until when.
 *
 * performance, stress  warm up until the caches are full, tune the sessions (or take those given),
 *                      measure; afterwards, where asked for, checksum all databases
 * database-backup      read all databases at once, as fast as they come; ends itself
 * soft-recovery        let the load write log files while the checkpoint is held back, forget
 *                      everything that is in memory, recover; ends itself
 *
 * The workload's ops hand over to it: start, warm_up, window, stop, verify, describe.  Databases
 * are attached when it begins and when it is stopped.  Callbacks may come from within the call.
 * Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_TEST_H
#define SANLAB_HARNESS_WORKLOAD_ESE_TEST_H

#include <jansson.h>

#include "harness/workload/ese/ese_config.h"
#include "harness/workload/ese/ese_server.h"
#include "harness/workload/workload.h"

struct ese_test_setup {
	const struct workload_env *env;
	const struct ese_config *config;
	struct workload *workload;   /* its progress, waits_for, ends_itself, sample_ns are set */
	struct ese_server **servers; /* stay the caller's */
	unsigned server_count;
};

struct ese_test;

int ese_test_new(const struct ese_test_setup *setup, struct ese_test **ret_test, struct err *err);
/* After stop and verify have called back.  NULL is fine; returns NULL. */
struct ese_test *ese_test_free(struct ese_test *test);

/* Before prepare attaches the databases: a line in the log. */
void ese_test_prepare(struct ese_test *test);
/* What happened beside the test, as a line of its log. */
void ese_test_note(struct ese_test *test, const char *text);
/* Starts the servers (none for a backup) and their first sessions. */
void ese_test_start(struct ese_test *test);
void ese_test_warm_up(struct ese_test *test, workload_fn done, void *arg);
void ese_test_window(struct ese_test *test, bool begins);
/* Ends what is under way and stops the servers; the databases stay attached.  It may come at any
 * time after ese_test_prepare; once more is harmless. */
void ese_test_stop(struct ese_test *test, workload_fn done, void *arg);
/* After stop: every page of every database against checksum and flush map, where the
 * configuration asks for it (else called back at once).  0, -ECANCELED after another stop, or an
 * I/O error. */
void ese_test_verify(struct ese_test *test, workload_fn done, void *arg);
/* record->exchange, complete (exchange_record.h): ese_server_describe() of each server and all
 * that the test knows. */
json_t *ese_test_describe(struct ese_test *test);

#endif
