/* SPDX-License-Identifier: MIT
 *
 * The auditor must not cry wolf: COUNT page I/Os on a database without a fault, with detaches and
 * crashes between them, and not one page may be reported.
 *
 *     ese_integrity COUNT [SEED]
 *
 * Prints one line with what was done and what it cost; fails when anything was reported, or came
 * back other than it was written.  scripts/soak runs it with 10^7 I/Os, scripts/test with fewer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/workload/ese/page_rig.h"

enum { IOS_PER_LIFE = 20000, SINCE_CHECKPOINT = 200 };

struct totals {
	uint64_t ios, pages, different, crashes, detaches;
};

static void must(int r)
{
	if (r < 0) {
		fprintf(stderr, "ese_integrity: an operation failed: %d\n", r);
		exit(1);
	}
}

/* One I/O as the engine does them: mostly one page, 1.80 reads a write. */
static void one_io(struct rig *rig, struct totals *totals)
{
	uint64_t first = rig_pick(rig);
	unsigned run = 1, different = 0;
	bool write = rng_unit(&rig->rng) < 1 / 2.8;
	struct ese_page_io pio;

	while (run < ESE_RUN_PAGES && first + run < rig->rules.pages &&
	       rng_unit(&rig->rng) < (write ? 0.1108 : 0.0174))
		run++;
	totals->ios++;
	totals->pages += run;
	if (write)
		must(rig_write(rig, first, run, 0));
	else
		rig_read(rig, first, run, &pio, &different);
	totals->different += different;
}

/* Since the checkpoint pages are written whose flush numbers the map on the volume does not have;
 * redo then reads and writes each of them. */
static void crash(struct rig *rig, struct totals *totals)
{
	uint64_t changed[SINCE_CHECKPOINT], checkpoint = rig->dbtime;
	struct ese_page_io pio;
	unsigned different, count = 0;

	must(rig_persist(rig));
	for (unsigned i = 0; i < SINCE_CHECKPOINT; i++) {
		uint64_t page = rig_pick(rig);

		must(rig_write(rig, page, 1, 0));
		changed[count++] = page;
	}
	totals->ios += count;
	totals->pages += count;
	rig_open(rig);
	must(rig_attach(rig));
	ese_pager_recovering(ese_file_pager(rig->file), checkpoint);
	for (unsigned i = 0; i < count; i++) {
		rig_read(rig, changed[i], 1, &pio, &different);
		totals->different += different;
		must(rig_write(rig, changed[i], 1, 0));
	}
	ese_pager_recovering(ese_file_pager(rig->file), UINT64_MAX);
	totals->crashes++;
}

static void detach(struct rig *rig, struct totals *totals)
{
	must(rig_detach(rig));
	rig_open(rig);
	must(rig_attach(rig));
	totals->detaches++;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	struct totals totals = {0};
	uint64_t begin_ns, bad;
	struct loop *clock;
	struct rig rig;
	double us;

	if (count == 0 || argc > 3) {
		fprintf(stderr, "usage: ese_integrity COUNT [SEED]\n");
		return 2;
	}
	must(loop_new_real(&clock));
	rig_init(&rig, seed, true, seed % 2, 0);
	begin_ns = loop_now_ns(clock);
	for (unsigned life = 0; totals.ios < count; life++) {
		for (unsigned i = 0; i < IOS_PER_LIFE && totals.ios < count; i++)
			one_io(&rig, &totals);
		if (life % 2)
			detach(&rig, &totals);
		else
			crash(&rig, &totals);
		must(rig_use(&rig));
	}
	us = (double)(loop_now_ns(clock) - begin_ns) / 1e3 / (double)totals.ios;
	bad = rig_checksum(&rig).bad;
	printf("ese_integrity: seed %" PRIu64 ", %" PRIu64 " I/Os (%" PRIu64 " pages), %" PRIu64
	       " crashes, %" PRIu64 " detaches: %" PRIu64 " reported, %" PRIu64
	       " different, %" PRIu64 " bad at the end; %.2f us an I/O\n",
	       seed, totals.ios, totals.pages, totals.crashes, totals.detaches, rig.mismatches,
	       totals.different, bad, us);
	rig_free(&rig);
	loop_free(clock);
	return rig.mismatches || totals.different || bad ? 1 : 0;
}
