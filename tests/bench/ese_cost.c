/* SPDX-License-Identifier: MIT
 *
 * What the Exchange engine costs: processor time for each I/O, the virtual loop and a device that
 * does nothing but wait included.  4 databases of 524.5 GB, no content and with it (smaller).
 *
 * usage: ese_cost [SECONDS of virtual time]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "tests/sim/ese/ese_rig.h"

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void measure(const char *title, const struct rig_setup *setup, double seconds)
{
	struct rig *rig = rig_new(setup);
	struct rig_figures f;
	double begin_s, ios;

	rig_run(rig, seconds / 4);
	rig_reset(rig);
	begin_s = cpu_s();
	rig_run(rig, seconds);
	begin_s = cpu_s() - begin_s;
	rig_figures(rig, &f);
	ios = (f.reads + f.writes + f.log_writes + f.bdm + f.log_reads) * seconds *
	      rig->setup.databases;
	printf("%-40s %10.0f I/Os, %8.0f transactions, %6.2f us CPU an I/O, %6.0f x real time\n",
	       title, ios, f.transactions * seconds, begin_s / ios * 1e6, seconds / begin_s);
	rig_free(rig);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3600;
	struct rig_setup plain = {
	    .config = "engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, sessions: 5, "
		      "content: none, initial-size: 524527075328",
	    .databases = 4,
	    .database_bytes = UINT64_C(524527075328) + 8 * GIB,
	    .seed = 1,
	};
	struct rig_setup verified = {
	    .config = "engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, sessions: 5, "
		      "initial-size: 1GiB, cache-min: 4MiB, cache-max: 16MiB",
	    .databases = 4,
	    .database_bytes = 3 * GIB,
	    .seed = 1,
	    .content = true,
	};

	measure("content none, 4 x 524.5 GB", &plain, seconds);
	measure("content verified, 4 x 1 GiB", &verified, seconds / 8);
	return 0;
}
