/* SPDX-License-Identifier: MIT
 *
 * The Exchange engine as a workload: every host of the lab is a server (ese_server.h).
 *
 * Other workloads and the run engine know it only as `struct workload`.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_WORKLOAD_H
#define SANLAB_HARNESS_WORKLOAD_ESE_WORKLOAD_H

#include "harness/workload/ese/ese_server.h"

struct ese_test;
struct ese_dag;

struct ese_workload {
	struct workload base;
	struct workload_env env;
	struct ese_config config;
	struct ese_place *places; /* server by server */
	struct ese_server **servers;
	unsigned server_count, database_count;
	struct ese_test *test;
	struct ese_dag *dag; /* NULL: there are no passive copies */
	char summary[160];
	struct loop_timer progress_timer;
	/* Waiting for all servers. */
	unsigned waiting;
	int status;
	workload_fn done;
	void *arg;
	/* The phases: prepare and verify, and stop, which may come into them. */
	enum { ESE_SETTLED, ESE_ATTACHING, ESE_CHECKING, ESE_DETACHING } phase;
	bool verifying;
	int verify_status;
	workload_fn phase_done, stop_done;
	void *phase_arg, *stop_arg;
};

extern const struct workload_ops ese_workload_ops;

/* ese_places.c: what a volume is too small for (workload_ops.check); what the run's devices are not
 * good for; the places of all databases and their streams. */
int ese_check_volume(const void *config, const char *volume, uint64_t size_bytes,
		     uint32_t block_bytes, struct err *err);
/* Whether placement names only volumes that there are (workload_ops.check_names). */
int ese_check_names(const void *config, const char *const *names, size_t count, struct err *err);
/* Whether a fault of the timeline is about a database with copies (workload_ops.check_fault). */
int ese_check_fault(const void *config, const struct workload_fault *fault, struct err *err);
int ese_check_devices(const struct ese_workload *ese, struct err *err);
int ese_make_places(struct ese_workload *ese, struct err *err);

#endif
