/* SPDX-License-Identifier: MIT
 *
 * The engine against server 1 of a published Jetstress report (QNAP ES1640DC): 4 databases of
 * 524.5 GB, 256 MiB of cache each, 5 sessions, on devices that take what the report's took.
 *
 * The half hour that is measured lies where the report's two hours have their mean: the cache is
 * full after 5 minutes, but goes on learning which pages are worth keeping for most of an hour.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/sim/ese/ese_rig.h"

#define DATABASE_BYTES UINT64_C(524527075328) /* 2,098,108,301,312 B in 4 */

#define SERVER_1                                                                            \
	"engine: ese, mailboxes: 1000, iops-per-mailbox: 0.168, copies: 2, content: none, " \
	"initial-size: 524527075328"

enum { WARM_S = 1800, WINDOW_S = 1800 };

static void within(const char *what, double found, double published, double share)
{
	double off = found / published - 1;

	print_message("# %-22s %10.3f, published %10.3f: %+.1f %%\n", what, found, published,
		      off * 100);
	if (fabs(off) > share)
		fail_msg("%s: %.3f instead of %.3f", what, found, published);
}

static void the_report_comes_out(void **state)
{
	struct rig_setup setup = {
	    .config = SERVER_1 ", sessions: 5",
	    .databases = 4,
	    .database_bytes = DATABASE_BYTES + 8 * GIB,
	    .seed = 1,
	};
	struct rig *rig = rig_new(&setup);
	struct rig_figures f;

	rig_run(rig, WARM_S);
	rig_reset(rig);
	rig_run(rig, WINDOW_S);
	rig_figures(rig, &f);
	rig_print("5 sessions", &f);
	within("read bytes", f.read_bytes, 33350, 0.03);
	within("write bytes", f.write_bytes, 36852, 0.03);
	within("reads : writes", f.reads / f.writes, 1.80, 0.03);
	within("database : log", (f.reads + f.writes) / f.log_writes, 10.93, 0.03);
	within("log write bytes", f.log_write_bytes, 20620, 0.03);
	within("maintenance reads/s", f.bdm, 9.0, 0.03);
	assert_true(f.bdm_bytes >= 261000 && f.bdm_bytes < 256 * KIB);
	within("achieved IOPS", f.iops, 232.185, 0.03);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_report_comes_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
