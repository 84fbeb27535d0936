/* SPDX-License-Identifier: MIT
 *
 * The shell: a server on loopback sockets in a child process, and libiscsi, which nobody here
 * wrote, as its initiator.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include "tests/unit/iscsi/peer_process.h"

enum { TIMEOUT_S = 10 };

static struct peer the_peer;

static int setup(void **state)
{
	*state = &the_peer;
	return peer_start(&the_peer);
}

static int teardown(void **state)
{
	return peer_stop(&the_peer);
}

/* ---- the initiator ---- */

static struct iscsi_context *context_new(enum iscsi_session_type type)
{
	struct iscsi_context *iscsi = iscsi_create_context(PEER_INITIATOR);

	assert_non_null(iscsi);
	iscsi_set_targetname(iscsi, PEER_TARGET_NAME);
	iscsi_set_session_type(iscsi, type);
	iscsi_set_timeout(iscsi, TIMEOUT_S);
	iscsi_set_noautoreconnect(iscsi, 1);
	return iscsi;
}

static char *address(const struct peer *peer, int portal)
{
	static char text[64];

	snprintf(text, sizeof text, "127.0.0.1:%u", peer->port[portal]);
	return text;
}

static struct iscsi_context *login(const struct peer *peer, int portal)
{
	struct iscsi_context *iscsi = context_new(ISCSI_SESSION_NORMAL);

	if (iscsi_full_connect_sync(iscsi, address(peer, portal), 0) != 0)
		fail_msg("%s", iscsi_get_error(iscsi));
	return iscsi;
}

static void logout(struct iscsi_context *iscsi)
{
	assert_int_equal(iscsi_logout_sync(iscsi), 0);
	iscsi_destroy_context(iscsi);
}

static void expect_good(struct scsi_task *task)
{
	assert_non_null(task);
	assert_int_equal(task->status, SCSI_STATUS_GOOD);
	scsi_free_scsi_task(task);
}

static void write_and_read(struct iscsi_context *iscsi, uint32_t lba, uint32_t bytes)
{
	unsigned char *data = malloc(bytes);
	struct scsi_task *task;

	assert_non_null(data);
	for (uint32_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)(i * 7 + lba + (i >> 9));
	if (lba % 2)
		expect_good(iscsi_write16_sync(iscsi, 0, lba, data, bytes, 512, 0, 0, 0, 0, 0));
	else
		expect_good(iscsi_write10_sync(iscsi, 0, lba, data, bytes, 512, 0, 0, 0, 0, 0));
	if (lba % 2)
		task = iscsi_read10_sync(iscsi, 0, lba, bytes, 512, 0, 0, 0, 0, 0);
	else
		task = iscsi_read16_sync(iscsi, 0, lba, bytes, 512, 0, 0, 0, 0, 0);
	assert_non_null(task);
	assert_int_equal(task->status, SCSI_STATUS_GOOD);
	assert_int_equal(task->datain.size, bytes);
	assert_memory_equal(task->datain.data, data, bytes);
	scsi_free_scsi_task(task);
	free(data);
}

static void test_read_write(void **state)
{
	static const uint32_t sizes[] = {512, 4096, 65536, 262144, 262656, 1048576, 3145728};
	struct peer *peer = *state;
	struct iscsi_context *iscsi = login(peer, 0);
	uint32_t lba = 0;

	expect_good(iscsi_testunitready_sync(iscsi, 0));
	expect_good(iscsi_inquiry_sync(iscsi, 0, 0, 0, 255));
	expect_good(iscsi_readcapacity16_sync(iscsi, 0));
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		write_and_read(iscsi, lba, sizes[i]);
		write_and_read(iscsi, lba + 1, sizes[i]);
		lba += 100;
	}
	assert_int_equal(peer_ask(peer, PEER_READS), 14);
	logout(iscsi);
}

static void test_write_modes(void **state)
{
	struct peer *peer = *state;

	for (int mode = 0; mode < 4; mode++) {
		struct iscsi_context *iscsi = context_new(ISCSI_SESSION_NORMAL);

		iscsi_set_immediate_data(iscsi, mode & 1 ? ISCSI_IMMEDIATE_DATA_YES
							 : ISCSI_IMMEDIATE_DATA_NO);
		iscsi_set_initial_r2t(iscsi,
				      mode & 2 ? ISCSI_INITIAL_R2T_YES : ISCSI_INITIAL_R2T_NO);
		iscsi_set_header_digest(iscsi, mode == 3 ? ISCSI_HEADER_DIGEST_CRC32C
							 : ISCSI_HEADER_DIGEST_NONE);
		assert_int_equal(iscsi_full_connect_sync(iscsi, address(peer, 0), 0), 0);
		write_and_read(iscsi, 7, 4096);
		write_and_read(iscsi, 8, 1048576);
		logout(iscsi);
	}
}

static void test_discovery(void **state)
{
	struct peer *peer = *state;
	struct iscsi_context *iscsi = context_new(ISCSI_SESSION_DISCOVERY);
	struct iscsi_discovery_address *found;
	char wanted[80];

	assert_int_equal(iscsi_connect_sync(iscsi, address(peer, 0)), 0);
	assert_int_equal(iscsi_login_sync(iscsi), 0);
	found = iscsi_discovery_sync(iscsi);
	assert_non_null(found);
	assert_string_equal(found->target_name, PEER_TARGET_NAME);
	snprintf(wanted, sizeof wanted, "%s,1", address(peer, 2));
	assert_string_equal(found->portals->portal, wanted);
	assert_null(found->portals->next);
	assert_null(found->next);
	iscsi_free_discovery_data(iscsi, found);
	logout(iscsi);
}

/* Four logins through the group portal: spread evenly over the members. */
static void test_redirect(void **state)
{
	struct peer *peer = *state;
	struct iscsi_context *iscsi[4];
	int per_portal[2] = {0, 0};

	for (int i = 0; i < 4; i++)
		iscsi[i] = login(peer, 2);
	for (int i = 0; i < 4; i++) {
		const char *at = iscsi_get_target_address(iscsi[i]);

		write_and_read(iscsi[i], 11, 8192);
		for (int p = 0; p < 2; p++)
			per_portal[p] +=
			    strncmp(at, address(peer, p), strlen(address(peer, p))) == 0;
	}
	assert_int_equal(per_portal[0], 2);
	assert_int_equal(per_portal[1], 2);
	for (int i = 0; i < 4; i++)
		logout(iscsi[i]);
}

static void test_reset(void **state)
{
	struct peer *peer = *state;
	struct iscsi_context *iscsi = login(peer, 0);
	struct scsi_task *task;

	assert_int_equal(peer_ask(peer, PEER_RESET_OTHER), 0); /* another initiator's: none */
	expect_good(iscsi_testunitready_sync(iscsi, 0));
	assert_int_equal(peer_ask(peer, PEER_RESET), 1);
	task = iscsi_testunitready_sync(iscsi, 0);
	assert_true(!task || task->status != SCSI_STATUS_GOOD);
	if (task)
		scsi_free_scsi_task(task);
	iscsi_destroy_context(iscsi);
	iscsi = login(peer, 0);
	write_and_read(iscsi, 5, 4096);
	logout(iscsi);
}

static void test_down(void **state)
{
	struct peer *peer = *state;
	struct iscsi_context *iscsi;
	struct iscsi_context *other;

	assert_int_equal(peer_ask(peer, PEER_DOWN), 0);
	iscsi = context_new(ISCSI_SESSION_NORMAL);
	assert_int_not_equal(iscsi_full_connect_sync(iscsi, address(peer, 0), 0), 0);
	iscsi_destroy_context(iscsi);
	other = login(peer, 2); /* redirected to the one that is up */
	assert_int_equal(
	    strncmp(iscsi_get_target_address(other), address(peer, 1), strlen(address(peer, 1))),
	    0);
	logout(other);
	assert_int_equal(peer_ask(peer, PEER_UP), 0);
	iscsi = login(peer, 0);
	write_and_read(iscsi, 5, 4096);
	logout(iscsi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_read_write, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_write_modes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_discovery, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_redirect, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_down, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
