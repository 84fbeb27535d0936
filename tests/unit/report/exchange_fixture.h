/* SPDX-License-Identifier: MIT
 *
 * Tests of Jetstress' kind that never ran.
 */
#ifndef SANLAB_TESTS_UNIT_REPORT_EXCHANGE_FIXTURE_H
#define SANLAB_TESTS_UNIT_REPORT_EXCHANGE_FIXTURE_H

#include "harness/report/record.h"

/* Server mbx1 with the four databases of the QNAP ES1640DC report (server 1), to the last digit it
 * prints, measured for 1,000 s. */
struct record *exchange_qnap(void);
/* Two servers: mbx1 as above; mbx <2> with a database whose log reads and log writes are on a
 * volume that two databases share, a copy, I/O errors and a failed verdict of its own. */
struct record *exchange_two_servers(void);
/* The same as a test of another kind: "stress", "database-backup", "soft-recovery". */
struct record *exchange_of(const char *test);

#endif
