/* SPDX-License-Identifier: MIT
 *
 * The load of the QNAP ES1640DC report (2016-01-18) on the array of a lab file, in virtual time:
 * prints read, write and log latencies beside the paper's.  scripts/reproduce-qnap runs it.
 *
 * The report's four servers run on two arrays, two on each, and reach "just above 1,100" IOPS
 * together; only server 1 is given in full.  Server 1's streams are played at their rates and
 * sizes, the other server's at SHARE times the rates: (1,100 / 2 - 232) / 232 = 1.37.
 *
 * usage: reproduce_qnap LAB.yaml [--json] [--minutes N] [--share X] [--set KEY=VALUE]...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "harness/sim/array_load.h"

enum { DATABASES = 4, SERVERS = 2, WARM_UP_S = 600, SETS_MAX = 16, DRAIN_S = 60 };

/* A file of the report: 2,098,108,301,312 B in 4 of them. */
#define DATABASE_BYTES (UINT64_C(2098108301312) / DATABASES)
#define LOG_BYTES      (8 * GIB) /* circular logging: where in its volume a log writes */

enum kind { READ, WRITE, LOG, BDM, REPLICATION, KINDS };

static const char *const kind_names[] = {"database read", "database write", "log write",
					 "maintenance read", "log replication read"};

/* Table of server 1 (results of the report, per database); rates per second, bytes, milliseconds.
 */
struct published {
	double per_second, bytes, ms;
};
static const struct published paper[KINDS][DATABASES] = {
    [READ] = {{37.194, 33346.8, 14.404},
	      {37.150, 33388.0, 14.178},
	      {37.402, 33347.4, 14.044},
	      {37.562, 33316.0, 13.741}},
    [WRITE] = {{20.644, 36932.5, 2.363},
	       {20.335, 36875.1, 2.401},
	       {20.907, 36822.4, 2.423},
	       {20.991, 36779.9, 2.363}},
    [LOG] = {{5.325, 20625.2, 1.063},
	     {5.254, 20607.5, 1.085},
	     {5.319, 20732.5, 1.079},
	     {5.350, 20513.4, 1.046}},
    /* Jetstress cannot tell maintenance from transactional reads: one latency for both. */
    [BDM] = {{8.993, 261223.2, 14.404},
	     {8.990, 261295.3, 14.178},
	     {8.997, 261166.3, 14.044},
	     {9.000, 261228.1, 13.741}},
    [REPLICATION] = {{0.468, 179529.9, 2.539},
		     {0.461, 179571.4, 2.883},
		     {0.470, 181962.6, 2.720},
		     {0.465, 180503.0, 2.757}},
};

/* How each kind goes about it. */
static const struct array_stream_config shapes[KINDS] = {
    [READ] = {.op = IO_READ, .unit_bytes = 32 * KIB, .region_bytes = DATABASE_BYTES},
    [WRITE] = {.op = IO_WRITE, .unit_bytes = 32 * KIB, .region_bytes = DATABASE_BYTES},
    [LOG] = {.op = IO_WRITE,
	     .flags = IO_FUA,
	     .pattern = ARRAY_STREAM_SEQUENTIAL,
	     .unit_bytes = 512,
	     .region_bytes = LOG_BYTES},
    [BDM] = {.op = IO_READ,
	     .pattern = ARRAY_STREAM_SEQUENTIAL,
	     .pace = ARRAY_STREAM_REGULAR,
	     .unit_bytes = 256 * KIB,
	     .region_bytes = DATABASE_BYTES},
    /* About seven reads for each log file that is copied to the other copy. */
    [REPLICATION] = {.op = IO_READ,
		     .pattern = ARRAY_STREAM_SEQUENTIAL,
		     .burst = 7,
		     .unit_bytes = 4 * KIB,
		     .region_bytes = LOG_BYTES},
};

struct study {
	const char *lab_file;
	const char *sets[SETS_MAX];
	size_t set_count;
	bool json;
	unsigned minutes;
	double share;
	struct lab *lab;
	struct loop *loop;
	struct group *group;
	struct array_load *load;
	int stream[SERVERS][KINDS][DATABASES];
};

static struct volume *find_volume(struct study *study, unsigned server, bool log, unsigned database)
{
	char name[32];
	struct volume *volume;

	/* Logs of databases 1 and 2 share a volume, those of 3 and 4 another. */
	snprintf(name, sizeof name, log ? "s%u-log%u" : "s%u-db%u", server + 1,
		 log ? database / 2 + 1 : database + 1);
	volume = group_find_volume(study->group, name);
	if (!volume) {
		(void)fprintf(stderr, "reproduce_qnap: the lab has no volume %s\n", name);
		exit(2);
	}
	return volume;
}

static int add_streams(struct study *study)
{
	for (unsigned s = 0; s < SERVERS; s++)
		for (unsigned k = 0; k < KINDS; k++)
			for (unsigned d = 0; d < DATABASES; d++) {
				struct array_stream_config config = shapes[k];
				bool log = k == LOG || k == REPLICATION;
				bool maintenance = k == BDM;

				config.volume = find_volume(study, s, log, d);
				config.mean_bytes = paper[k][d].bytes;
				/* Maintenance runs at its own pace, whatever the load. */
				config.per_second = paper[k][d].per_second *
						    (s == 0 || maintenance ? 1 : study->share);
				config.from_bytes = log ? d % 2 * LOG_BYTES : 0;
				if (k == REPLICATION)
					config.behind = (unsigned)study->stream[s][LOG][d] + 1;
				study->stream[s][k][d] = array_load_add(study->load, &config);
				if (study->stream[s][k][d] < 0)
					return study->stream[s][k][d];
			}
	return 0;
}

static int prepare(struct study *study)
{
	struct err err = {0};
	int r = lab_load(study->lab_file, study->sets, study->set_count, &study->lab);

	if (r)
		return r;
	r = loop_new_virtual(0, &study->loop);
	if (r == 0)
		r = group_open(study->loop, &study->lab->group, study->lab->name, study->lab->seed,
			       &study->group, &err);
	if (r == 0)
		r = array_load_new(study->loop, study->lab->seed, &study->load);
	if (r)
		err_print(&err);
	return r ? r : add_streams(study);
}

static void play(struct study *study)
{
	uint64_t end_ns = (WARM_UP_S + study->minutes * UINT64_C(60)) * NS_PER_S;

	loop_run_until(study->loop, WARM_UP_S * NS_PER_S);
	array_load_begin_window(study->load);
	loop_run_until(study->loop, end_ns);
	array_load_stop(study->load);
	loop_run_until(study->loop, end_ns + DRAIN_S * NS_PER_S);
}

/* One kind of one server, all databases together; the paper's mean is weighted by rate. */
struct row {
	double per_second, bytes, mean_ms, p95_ms, paper_per_second, paper_ms;
	uint64_t errors;
};

static struct row row_of(const struct study *study, unsigned server, unsigned kind)
{
	struct row row = {0};
	struct hist all;
	uint64_t requests = 0, bytes = 0;

	hist_reset(&all);
	for (unsigned d = 0; d < DATABASES; d++) {
		const struct array_stream_result *result =
		    array_load_result(study->load, (unsigned)study->stream[server][kind][d]);

		requests += result->requests;
		bytes += result->bytes;
		row.errors += result->errors;
		hist_merge(&all, &result->latency);
		row.paper_per_second += paper[kind][d].per_second;
		row.paper_ms += paper[kind][d].per_second * paper[kind][d].ms;
	}
	row.paper_ms /= row.paper_per_second;
	row.per_second = (double)requests / (study->minutes * 60.0);
	row.bytes = requests ? (double)bytes / (double)requests : 0;
	row.mean_ms = hist_mean_ns(&all) / 1e6;
	row.p95_ms = (double)hist_quantile_ns(&all, 0.95) / 1e6;
	return row;
}

static void print_drives(struct study *study)
{
	struct member *member = group_member_at(study->group, 0);
	uint64_t busy_ns = 0, ios = 0;
	unsigned count = member_drive_count(member);

	for (unsigned i = 0; i < count; i++) {
		const struct drive *drive = member_drive(member, i);

		busy_ns += drive->counters.busy_ns;
		ios += drive->counters.reads + drive->counters.writes;
	}
	printf("drives: %.0f %% busy, %.1f requests/s each\n",
	       100.0 * (double)busy_ns / count / (double)loop_now_ns(study->loop),
	       (double)ios / count * 1e9 / (double)loop_now_ns(study->loop));
}

static void print_results(struct study *study)
{
	if (!study->json)
		printf("%-22s %17s %8s %24s %8s %8s\n", "server 1", "rate/s", "KB",
		       "mean latency ms", "p95", "model/");
	if (!study->json)
		printf("%-22s %8s %8s %8s %12s %11s %8s %8s\n", "", "paper", "model", "model",
		       "paper", "model", "model", "paper");
	else
		printf(
		    "{\"schema\": \"sanlab/reproduce-qnap/1\", \"minutes\": %u, \"share\": %.3f, "
		    "\"streams\": [",
		    study->minutes, study->share);
	for (unsigned k = 0; k < KINDS; k++) {
		struct row row = row_of(study, 0, k);

		if (study->json)
			printf("%s{\"stream\": \"%s\", \"paper_per_s\": %.2f, \"per_s\": %.2f, "
			       "\"paper_mean_ns\": %.0f, \"mean_ns\": %.0f, \"p95_ns\": %.0f, "
			       "\"errors\": %llu}",
			       k ? ", " : "", kind_names[k], row.paper_per_second, row.per_second,
			       row.paper_ms * 1e6, row.mean_ms * 1e6, row.p95_ms * 1e6,
			       (unsigned long long)row.errors);
		else
			printf("%-22s %8.1f %8.1f %8.1f %12.2f %11.2f %8.2f %8.2f\n", kind_names[k],
			       row.paper_per_second, row.per_second, row.bytes / 1000, row.paper_ms,
			       row.mean_ms, row.p95_ms, row.mean_ms / row.paper_ms);
	}
	if (study->json)
		printf("]}\n");
	else
		print_drives(study);
}

static int usage(void)
{
	(void)fputs("usage: reproduce_qnap LAB.yaml [--json] [--minutes N] [--share X] "
		    "[--set KEY=VALUE]...\n",
		    stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct study study = {.minutes = 120, .share = 1.37};
	int r;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (strcmp(argv[i], "--json") == 0)
			study.json = true;
		else if (strcmp(argv[i], "--minutes") == 0 && more)
			study.minutes = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--share") == 0 && more)
			study.share = strtod(argv[++i], NULL);
		else if (strcmp(argv[i], "--set") == 0 && more && study.set_count < SETS_MAX)
			study.sets[study.set_count++] = argv[++i];
		else if (!study.lab_file && argv[i][0] != '-')
			study.lab_file = argv[i];
		else
			return usage();
	}
	if (!study.lab_file || !study.minutes || !(study.share > 0))
		return usage();
	r = prepare(&study);
	if (r == 0) {
		play(&study);
		print_results(&study);
		if (array_load_outstanding(study.load))
			(void)fprintf(stderr, "reproduce_qnap: %u requests never ended\n",
				      array_load_outstanding(study.load));
	}
	if (study.group)
		group_close(study.group);
	array_load_free(study.load);
	loop_free(study.loop);
	lab_free(study.lab);
	return r ? 3 : 0;
}
