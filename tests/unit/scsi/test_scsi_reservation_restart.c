/* SPDX-License-Identifier: MIT
 *
 * Reservations over iSCSI through the sudden end of the target: libiscsi registers with APTPL and
 * reserves, the target is killed, and the next one on the same file store still knows both.
 */
#include <arpa/inet.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY_A UINT64_C(0xa1a2a3a4a5a6a7a8)
#define KEY_B UINT64_C(0xb)
#define IQN   "iqn.2026-11.test.sanlab:survive"

enum { EXCLUSIVE = SCSI_PERSISTENT_RESERVE_TYPE_EXCLUSIVE_ACCESS };

static char directory[] = "/tmp/sanlab-survive-XXXXXX";
static int port;
static pid_t target_pid;

static void write_lab(const char *path)
{
	FILE *lab = fopen(path, "w");

	assert_non_null(lab);
	fprintf(lab,
		"name: survive\n"
		"group:\n"
		"  style: lun\n"
		"  portal: 127.0.0.1:%d\n"
		"  pools:\n"
		"    - name: default\n"
		"      members:\n"
		"        - name: m1\n"
		"          drives: {model: sas-15k-600, count: 2, size: 64MiB}\n"
		"          raid: raid0\n"
		"          store: {file: %s/store}\n"
		"  volumes:\n"
		"    - {name: v0, pool: default, size: 32MiB}\n",
		port, directory);
	assert_int_equal(fclose(lab), 0);
}

static void choose_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	port = ntohs(address.sin_port);
}

/* Returns when the target has printed its line "ready". */
static void start_target(const char *lab)
{
	char line[200] = "";
	FILE *out;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	target_pid = fork();
	assert_true(target_pid >= 0);
	if (target_pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl(SANLAB_PROGRAM, "sanlab", "target", lab, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	assert_non_null(out);
	if (!fgets(line, sizeof line, out))
		line[0] = '\0';
	fclose(out);
	if (strncmp(line, "ready", 5) != 0)
		fail_msg("the target says '%s'", line);
}

static int end_target(int signal_number)
{
	int status = 0;

	kill(target_pid, signal_number);
	assert_int_equal(waitpid(target_pid, &status, 0), target_pid);
	target_pid = 0;
	return status;
}

static struct iscsi_context *login(const char *initiator, uint32_t qualifier)
{
	struct iscsi_context *iscsi = iscsi_create_context(initiator);
	char portal[64];

	assert_non_null(iscsi);
	snprintf(portal, sizeof portal, "127.0.0.1:%d", port);
	iscsi_set_targetname(iscsi, IQN);
	iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
	iscsi_set_isid_en(iscsi, 7, qualifier); /* the same I_T nexus at each login */
	iscsi_set_noautoreconnect(iscsi, 1);
	if (iscsi_full_connect_sync(iscsi, portal, 0))
		fail_msg("login: %s", iscsi_get_error(iscsi));
	return iscsi;
}

static int pr_out(struct iscsi_context *iscsi, int action, uint64_t key, uint64_t service_key,
		  bool persists)
{
	struct scsi_persistent_reserve_out_basic list = {
	    .reservation_key = key,
	    .service_action_reservation_key = service_key,
	    .aptpl = persists,
	};
	struct scsi_task *task = iscsi_persistent_reserve_out_sync(
	    iscsi, 0, action, SCSI_PERSISTENT_RESERVE_SCOPE_LU, EXCLUSIVE, &list);
	int status;

	assert_non_null(task);
	status = task->status;
	scsi_free_scsi_task(task);
	return status;
}

static int read_block(struct iscsi_context *iscsi)
{
	struct scsi_task *task = iscsi_read10_sync(iscsi, 0, 0, 512, 512, 0, 0, 0, 0, 0);
	int status;

	assert_non_null(task);
	status = task->status;
	scsi_free_scsi_task(task);
	return status;
}

static void expect_state(struct iscsi_context *iscsi)
{
	struct scsi_task *task =
	    iscsi_persistent_reserve_in_sync(iscsi, 0, SCSI_PERSISTENT_RESERVE_READ_KEYS, 1024);
	struct scsi_persistent_reserve_in_read_reservation *reservation;
	struct scsi_persistent_reserve_in_read_keys *keys;

	assert_int_equal(task->status, SCSI_STATUS_GOOD);
	keys = scsi_datain_unmarshall(task);
	assert_non_null(keys);
	assert_int_equal(keys->num_keys, 2);
	assert_true(keys->keys[0] == KEY_A && keys->keys[1] == KEY_B);
	scsi_free_scsi_task(task);
	task = iscsi_persistent_reserve_in_sync(iscsi, 0, SCSI_PERSISTENT_RESERVE_READ_RESERVATION,
						1024);
	assert_int_equal(task->status, SCSI_STATUS_GOOD);
	reservation = scsi_datain_unmarshall(task);
	assert_non_null(reservation);
	assert_true(reservation->reservation_key == KEY_A);
	assert_int_equal(reservation->pr_type, EXCLUSIVE);
	scsi_free_scsi_task(task);
}

static void leave(struct iscsi_context *iscsi)
{
	iscsi_destroy_context(iscsi);
}

static void test_survives_kill(void **state)
{
	struct iscsi_context *a, *b;
	char lab[100];

	(void)state;
	snprintf(lab, sizeof lab, "%s/lab.yaml", directory);
	choose_port();
	write_lab(lab);
	start_target(lab);
	a = login("iqn.2026-11.test:a", 1);
	b = login("iqn.2026-11.test:b", 2);
	assert_int_equal(pr_out(a, SCSI_PERSISTENT_RESERVE_REGISTER, 0, KEY_A, true), 0);
	assert_int_equal(pr_out(b, SCSI_PERSISTENT_RESERVE_REGISTER, 0, KEY_B, true), 0);
	assert_int_equal(pr_out(a, SCSI_PERSISTENT_RESERVE_RESERVE, KEY_A, 0, false), 0);
	expect_state(b);
	end_target(SIGKILL);
	leave(a);
	leave(b);

	start_target(lab);
	b = login("iqn.2026-11.test:b", 2);
	expect_state(b);
	assert_int_equal(read_block(b), SCSI_STATUS_RESERVATION_CONFLICT);
	a = login("iqn.2026-11.test:a", 1);
	assert_int_equal(read_block(a), SCSI_STATUS_GOOD);
	assert_int_equal(pr_out(a, SCSI_PERSISTENT_RESERVE_CLEAR, KEY_A, 0, false), 0);
	leave(a);
	leave(b);
	assert_int_equal(end_target(SIGTERM), 0);
}

static int teardown(void **state)
{
	char command[100];

	(void)state;
	if (target_pid > 0)
		end_target(SIGKILL);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_survives_kill, teardown),
	};

	if (!mkdtemp(directory))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
