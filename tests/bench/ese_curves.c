/* SPDX-License-Identifier: MIT
 *
 * What emerges from the Exchange engine, as tables over one knob each, in virtual time on devices
 * of fixed latency; reports, never gates.
 *
 *   depth      checkpoint depth, under skew and without: page writes a transaction
 *   databases  the same users and cache on more and fewer databases: I/Os in all, as maintenance
 *              runs on each
 *   size       size of a database: reads a transaction, reads : writes
 *   cache      cache of a database: the same
 *   sessions   closed loop: I/Os a second over the sessions
 *
 * usage: ese_curves [depth|databases|size|cache|sessions]... [--seconds N] [--csv]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/sim/ese/ese_rig.h"

static double seconds = 1200;
static bool csv;

/* A server's four databases together, unless a curve says otherwise. */
#define BASE "engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, copies: 2, content: none"

static void run(const char *curve, const char *knob, const char *config, unsigned databases,
		uint64_t database_bytes)
{
	struct rig_setup setup = {
	    .config = config,
	    .databases = databases,
	    .database_bytes = database_bytes + 16 * GIB,
	    .seed = 1,
	};
	struct rig *rig = rig_new(&setup);
	struct rig_figures f;
	double all; /* with log and maintenance */

	rig_run(rig, seconds);
	rig_reset(rig);
	rig_run(rig, seconds);
	rig_figures(rig, &f);
	all = f.iops + (f.log_writes + f.bdm + f.log_reads) * databases;
	printf(csv ? "%s,%s,%.2f,%.2f,%.2f,%.4f,%.4f,%.3f,%.3f\n"
		   : "%-10s %-22s %8.1f %8.1f %8.1f %10.4f %10.4f %8.3f %8.3f\n",
	       curve, knob, f.transactions, f.iops, all, f.reads * databases / f.transactions,
	       f.writes * databases / f.transactions, f.reads / f.writes,
	       (f.reads + f.writes) / f.log_writes);
	fflush(stdout);
	rig_free(rig);
}

static void head(void)
{
	printf(csv ? "%s,%s,%s,%s,%s,%s,%s,%s,%s\n" : "%-10s %-22s %8s %8s %8s %10s %10s %8s %8s\n",
	       "curve", "knob", "tx/s", "IOPS", "all/s", "reads/tx", "writes/tx", "r:w", "db:log");
}

static void depth(void)
{
	static const unsigned depths[] = {5, 10, 20, 50, 100, 200};
	static const char *const access[] = {
	    "uniform",
	    "hot, hot-pages: 0.02%, hot-share: 60%",
	};

	for (size_t k = 0; k < ARRAY_SIZE(access); k++)
		for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
			char config[600], knob[64];

			snprintf(config, sizeof config,
				 BASE ", sessions: 5, initial-size: 64GiB, checkpoint-depth: "
				      "%uMB, access: {kind: %s}",
				 depths[i], access[k]);
			snprintf(knob, sizeof knob, "%u MB %s", depths[i], k ? "hot" : "uniform");
			run("depth", knob, config, 4, 64 * GIB);
		}
}

/* 2 TB of mailboxes and 1 GiB of cache, whatever they are spread over. */
static void databases(void)
{
	static const unsigned counts[] = {1, 2, 4, 8, 16};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		uint64_t bytes = 2098108301312 / counts[i];
		char config[600], knob[64];

		snprintf(config, sizeof config,
			 BASE ", sessions: 5, initial-size: %llu, cache-max: %uMiB, cache-min: "
			      "%uMiB",
			 (unsigned long long)bytes, 1024 / counts[i], 128 / counts[i]);
		snprintf(knob, sizeof knob, "%u databases", counts[i]);
		run("databases", knob, config, counts[i], bytes);
	}
}

static void size(void)
{
	static const unsigned sizes[] = {50, 100, 200, 300, 400, 524, 644, 1000, 2000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char config[600], knob[64];

		snprintf(config, sizeof config, BASE ", sessions: 5, initial-size: %uGB", sizes[i]);
		snprintf(knob, sizeof knob, "%u GB", sizes[i]);
		run("size", knob, config, 4, sizes[i] * UINT64_C(1000000000));
	}
}

static void cache(void)
{
	static const unsigned sizes[] = {64, 128, 192, 256, 384, 512, 1024};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char config[600], knob[64];

		snprintf(config, sizeof config,
			 BASE ", sessions: 5, initial-size: 524527075328, cache-max: %uMiB",
			 sizes[i]);
		snprintf(knob, sizeof knob, "%u MiB", sizes[i]);
		run("cache", knob, config, 4, UINT64_C(524527075328));
	}
}

static void sessions(void)
{
	static const unsigned counts[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		char config[600], knob[64];

		snprintf(config, sizeof config, BASE ", sessions: %u, initial-size: 524527075328",
			 counts[i]);
		snprintf(knob, sizeof knob, "%u sessions", counts[i]);
		run("sessions", knob, config, 4, UINT64_C(524527075328));
	}
}

static const struct curve {
	const char *name;
	void (*draw)(void);
} curves[] = {
    {"depth", depth}, {"databases", databases}, {"size", size},
    {"cache", cache}, {"sessions", sessions},
};

int main(int argc, char **argv)
{
	bool named = false;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--csv"))
			csv = true;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = strtod(argv[++i], NULL);
		else
			named = true;
	head();
	for (size_t k = 0; k < ARRAY_SIZE(curves); k++) {
		bool wanted = !named;

		for (int i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], curves[k].name);
		if (wanted)
			curves[k].draw();
	}
	return 0;
}
