/* SPDX-License-Identifier: MIT
 *
 * The Exchange engine as a workload: every host of the lab is a server (ese_server.h).
 *
 * For test types, tuning and reports (ese_test.h); other workloads and the run engine know it only
 * as `struct workload`.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_WORKLOAD_H
#define SANLAB_HARNESS_WORKLOAD_ESE_WORKLOAD_H

#include "harness/workload/ese/ese_server.h"

struct ese_workload {
	struct workload base;
	struct workload_env env; /* its devices and their names are copies */
	struct ese_config config;
	struct ese_place *places; /* server by server */
	struct ese_server **servers;
	unsigned server_count, database_count;
	char summary[160];
	bool started;
	/* Waiting for all servers. */
	unsigned waiting;
	int status;
	workload_fn done;
	void *arg;
};

extern const struct workload_ops ese_workload_ops;

/* NULL: WORKLOAD is of another kind. */
struct ese_workload *ese_workload_of(struct workload *workload);

#endif
