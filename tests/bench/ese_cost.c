/* SPDX-License-Identifier: MIT
 *
 * What the Exchange engine costs: processor time for each I/O, the virtual loop included.  4
 * databases of 524.5 GB, no content and with it (smaller).  With content the device copies what it
 * is given to and from memory that mostly was not touched before: its share is told apart.
 *
 * usage: ese_cost [SECONDS of virtual time]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "tests/sim/ese/ese_rig.h"

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* What it costs to ask: twice for each transfer. */
static double clock_cost_ns(void)
{
	enum { TIMES = 10000 };
	uint64_t begin_ns = cpu_ns();

	for (int i = 1; i < TIMES; i++)
		cpu_ns();
	return (double)(cpu_ns() - begin_ns) / TIMES;
}

static void measure(const char *title, const struct rig_setup *setup, double seconds)
{
	struct rig *rig = rig_new(setup);
	struct rig_figures f;
	double total_ns, device_ns, asking_ns, ios;

	rig_run(rig, seconds / 4);
	rig_reset(rig);
	total_ns = (double)cpu_ns();
	rig_run(rig, seconds);
	total_ns = (double)cpu_ns() - total_ns;
	asking_ns = clock_cost_ns() * (double)rig->transfers;
	total_ns -= 2 * asking_ns;
	device_ns = (double)rig->transfer_ns - asking_ns;
	rig_figures(rig, &f);
	ios = (f.reads + f.writes + f.log_writes + f.bdm + f.log_reads) * seconds *
	      rig->setup.databases;
	printf("%-30s %8.0f I/Os, %7.0f transactions; CPU an I/O: engine %5.2f us, device %5.2f "
	       "us; %6.0f x real time\n",
	       title, ios, f.transactions * seconds, (total_ns - device_ns) / ios / NS_PER_US,
	       device_ns / ios / NS_PER_US, seconds * NS_PER_S / total_ns);
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
	    .clock_ns = cpu_ns,
	};

	measure("content none, 4 x 524.5 GB", &plain, seconds);
	measure("content verified, 4 x 1 GiB", &verified, seconds / 8);
	return 0;
}
