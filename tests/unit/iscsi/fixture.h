/* SPDX-License-Identifier: MIT
 *
 * A server on the virtual loop with one target, one portal and one raw-PDU client: what most tests
 * of the room begin with.
 */
#ifndef SANLAB_TESTS_UNIT_ISCSI_FIXTURE_H
#define SANLAB_TESTS_UNIT_ISCSI_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/iscsi/fake_scsi.h"
#include "tests/unit/iscsi/pdu_client.h"

#define TARGET_NAME "iqn.2026-11.test.sanlab:unit:db1"

struct fixture {
	struct loop *loop;
	struct buf_pool *pool;
	struct iscsi_server *server;
	struct scsi_target *target;
	struct iscsi_portal *portal;
	struct pdu_client client;
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

/* A portal of the fixture's server at HOST:PORT that does not listen. */
struct iscsi_portal *fixture_portal(struct fixture *fixture, const char *host, uint16_t port,
				    uint16_t tag, bool redirects);
/* Opens the fixture's client and logs it in with EXTRA keys. */
void fixture_login(struct fixture *fixture, const char *extra, size_t extra_size);
/* Bytes that tell where they belong. */
void fixture_pattern(uint8_t *to, size_t bytes, unsigned seed);

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif
