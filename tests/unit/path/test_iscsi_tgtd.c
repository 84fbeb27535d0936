/* SPDX-License-Identifier: MIT
 *
 * The iSCSI path and MPIO against Debian's tgtd, a target nobody here wrote.  Skipped where tgtd is
 * not installed or may not be started.
 *
 * The daemon gets a control number and a port of its own and is ended by its process id.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/mpio/mpio.h"
#include "owner.h"

enum { LU_BYTES = 16 << 20, MANY = 64, IO_BLOCKS = 128 };

static const char target[] = "iqn.2026-11.test.sanlab:tgtd";

struct daemon {
	pid_t pid;
	char control[16];
	char portal[64];
	char file[64];
};

static struct daemon *running; /* ended after its test, also when that fails */

static uint16_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void quiet(void)
{
	(void)!freopen("/dev/null", "w", stdout);
	(void)!freopen("/dev/null", "w", stderr);
}

static int tgtadm(const struct daemon *d, const char *const *arguments)
{
	const char *argv[24] = {"tgtadm", "-C", d->control, "--lld", "iscsi"};
	unsigned n = 5;
	int status;
	pid_t pid;

	while (*arguments && n < ARRAY_SIZE(argv) - 1)
		argv[n++] = *arguments++;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		quiet();
		execv("/usr/sbin/tgtadm", (char *const *)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void wait_until_it_answers(struct daemon *d)
{
	const char *const show[] = {"--op", "show", "--mode", "system", NULL};

	for (unsigned tries = 0; tries < 200; tries++) {
		int status;

		if (waitpid(d->pid, &status, WNOHANG) == d->pid) {
			d->pid = 0;
			return;
		}
		if (tgtadm(d, show) == 0)
			return;
		poll(NULL, 0, 20);
	}
}

static void make_unit(const struct daemon *d)
{
	const char *const make[] = {"--op", "new", "--mode", "target", "--tid",
				    "1",    "-T",  target,   NULL};
	const char *const unit[] = {"--op",  "new", "--mode", "logicalunit", "--tid", "1",
				    "--lun", "1",   "-b",     d->file,	     NULL};
	const char *const bind_all[] = {"--op", "bind", "--mode", "target", "--tid",
					"1",	"-I",	"ALL",	  NULL};

	assert_int_equal(tgtadm(d, make), 0);
	assert_int_equal(tgtadm(d, unit), 0);
	assert_int_equal(tgtadm(d, bind_all), 0);
}

static void start_daemon(struct daemon *d)
{
	char portal[96];
	int fd;

	*d = (struct daemon){0};
	if (access("/usr/sbin/tgtd", X_OK) || access("/usr/sbin/tgtadm", X_OK) || geteuid() != 0)
		skip();
	snprintf(d->control, sizeof d->control, "%u", 1000 + (unsigned)getpid() % 30000);
	snprintf(d->portal, sizeof d->portal, "127.0.0.1:%u", free_port());
	snprintf(portal, sizeof portal, "portal=%s", d->portal);
	snprintf(d->file, sizeof d->file, "/tmp/sanlab-tgtd-XXXXXX");
	fd = mkstemp(d->file);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LU_BYTES), 0);
	close(fd);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		quiet();
		execl("/usr/sbin/tgtd", "tgtd", "-f", "-C", d->control, "--iscsi", portal,
		      (char *)NULL);
		_exit(127);
	}
	running = d;
	wait_until_it_answers(d);
	if (!d->pid)
		skip(); /* no permission, no shared memory, ... */
	make_unit(d);
}

static void kill_daemon(struct daemon *d)
{
	int status;

	if (!d->pid)
		return;
	kill(d->pid, SIGKILL);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	d->pid = 0;
}

static int stop_daemon(void **unused)
{
	struct daemon *d = running;
	char path[64];

	if (!d)
		return 0;
	running = NULL;
	kill_daemon(d);
	unlink(d->file);
	/* What a killed tgtd leaves behind. */
	snprintf(path, sizeof path, "/var/run/tgtd/socket.%s", d->control);
	unlink(path);
	snprintf(path, sizeof path, "/var/run/tgtd/socket.%s.lock", d->control);
	unlink(path);
	return 0;
}

struct bench {
	struct daemon daemon;
	struct loop *loop;
	struct owner owner;
	struct path_config config;
	uint8_t *data[MANY];
	struct owner_io oios[MANY];
};

static void open_bench(struct bench *b)
{
	memset(b, 0, sizeof *b);
	start_daemon(&b->daemon);
	assert_int_equal(loop_new_real(&b->loop), 0);
	b->config = owner_config(&b->owner, b->daemon.portal);
	b->config.target = target;
	b->config.lun = 1;
	assert_int_equal(owner_open(&b->owner, b->loop, &b->config), 0);
	assert_int_equal(path_connect(b->owner.path), 0);
	if (!owner_wait(&b->owner, &b->owner.ups, 1, 10))
		fail_msg("no login: %s", b->owner.why);
	for (unsigned i = 0; i < MANY; i++) {
		b->data[i] = calloc(IO_BLOCKS, 512);
		assert_non_null(b->data[i]);
	}
}

static void close_bench(struct bench *b)
{
	path_free(b->owner.path);
	loop_free(b->loop);
	for (unsigned i = 0; i < MANY; i++)
		free(b->data[i]);
}

static void submit_many(struct bench *b, enum io_op op)
{
	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&b->owner, &b->oios[i], op, (uint64_t)i * IO_BLOCKS, IO_BLOCKS,
			     b->data[i]);
}

static void write_and_read_back(void **unused)
{
	static struct bench b;
	const struct path_identity *id;

	open_bench(&b);
	id = &b.owner.path->identity;
	assert_int_equal(id->block_bytes, 512);
	assert_int_equal(id->blocks, LU_BYTES / 512);
	assert_true(id->designator_bytes > 0);
	assert_string_equal(id->vendor, "IET");
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned n = 0; n < IO_BLOCKS * 512; n++)
			b.data[i][n] = (uint8_t)(i * 7 + n / 512 + n);
	submit_many(&b, IO_WRITE);
	assert_true(owner_wait(&b.owner, &b.owner.ok, MANY, 20));
	for (unsigned i = 0; i < MANY; i++)
		memset(b.data[i], 0, (size_t)IO_BLOCKS * 512);
	submit_many(&b, IO_READ);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 2 * MANY, 20));
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned n = 0; n < IO_BLOCKS * 512; n++)
			assert_int_equal(b.data[i][n], (uint8_t)(i * 7 + n / 512 + n));
	owner_submit(&b.owner, &b.oios[0], IO_FLUSH, 0, 0, NULL);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 2 * MANY + 1, 20));
	/* Beyond the end. */
	owner_submit(&b.owner, &b.oios[0], IO_READ, LU_BYTES / 512, 1, b.data[0]);
	assert_true(owner_wait(&b.owner, &b.owner.other, 1, 20));
	assert_int_equal(b.oios[0].pio.result, PATH_SENSE);
	assert_int_equal(b.oios[0].pio.sense_key, 5);
	assert_int_equal(b.oios[0].pio.asc, 0x21);
	close_bench(&b);
}

static void killed_with_io_in_flight(void **unused)
{
	static struct bench b;

	open_bench(&b);
	submit_many(&b, IO_WRITE);
	assert_int_equal(loop_turn(b.loop, false), 0);
	kill_daemon(&b.daemon);
	assert_true(owner_wait(&b.owner, &b.owner.downs, 1, 20));
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(b.oios[i].ends, 1);
	assert_int_equal(b.owner.ok + b.owner.lost, MANY);
	assert_true(b.owner.lost > 0);
	assert_true(b.owner.completed_before_down);
	assert_true(b.owner.path->lost_by == PATH_DETECT_RESET ||
		    b.owner.path->lost_by == PATH_DETECT_CLOSED);
	assert_int_equal(path_connect(b.owner.path), 0);
	assert_true(owner_wait(&b.owner, &b.owner.downs, 2, 20));
	assert_int_equal(b.owner.path->lost_by, PATH_DETECT_RESET);
	assert_non_null(strstr(b.owner.why, "refused"));
	close_bench(&b);
}

/* A daemon that hangs: the kernel goes on acknowledging for it. */
static void silent_with_io_in_flight(void **unused)
{
	static struct bench b;

	open_bench(&b);
	kill(b.daemon.pid, SIGSTOP);
	submit_many(&b, IO_WRITE);
	assert_true(owner_wait(&b.owner, &b.owner.downs, 1, 20));
	assert_int_equal(b.owner.path->lost_by, PATH_DETECT_KEEPALIVE);
	assert_int_equal(b.owner.lost, MANY);
	kill(b.daemon.pid, SIGCONT);
	assert_int_equal(path_connect(b.owner.path), 0);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 2, 20));
	close_bench(&b);
}

struct proof {
	struct path_fence fence;
	unsigned done;
	int status;
};

static void on_proof(struct path_fence *fence, int status)
{
	struct proof *proof = fence->owner;

	proof->done++;
	proof->status = status;
}

/* A session that nobody looks after any more, as a lost path leaves it behind. */
static struct iscsi_context *abandoned_session(const struct bench *b, const char *name,
					       uint32_t isid_qualifier)
{
	struct iscsi_context *ctx = iscsi_create_context(name);

	assert_non_null(ctx);
	iscsi_set_noautoreconnect(ctx, 1);
	assert_int_equal(iscsi_set_targetname(ctx, target), 0);
	assert_int_equal(iscsi_set_session_type(ctx, ISCSI_SESSION_NORMAL), 0);
	assert_int_equal(iscsi_set_isid_random(ctx, isid_qualifier >> 16, isid_qualifier & 0xffff),
			 0);
	assert_int_equal(iscsi_full_connect_sync(ctx, b->daemon.portal, 1), 0);
	return ctx;
}

static bool has_ended(struct iscsi_context *ctx, unsigned ms)
{
	struct pollfd pfd = {.fd = iscsi_get_fd(ctx), .events = POLLIN};
	char byte;

	return poll(&pfd, 1, (int)ms) == 1 && recv(pfd.fd, &byte, 1, MSG_PEEK) <= 0;
}

/* tgtd ends the old session before the fence's login succeeds, and no other session. */
static void reinstatement(void **unused)
{
	static struct bench b;
	static const char name[] = "iqn.2026-11.test.sanlab:victim";
	struct proof proof = {.fence = {.done = on_proof, .owner = &proof}};
	struct iscsi_context *old, *other;
	struct path_config config;
	struct owner victim;

	open_bench(&b);
	old = abandoned_session(&b, name, 0x00a1b2c3);
	other = abandoned_session(&b, name, 0x00a1b2c4);
	assert_false(has_ended(old, 0));
	config = owner_config(&victim, b.daemon.portal);
	config.target = target;
	config.lun = 1;
	config.initiator_name = name;
	config.isid_qualifier = 0x00a1b2c3;
	assert_int_equal(owner_open(&victim, b.loop, &config), 0);
	assert_int_equal(path_fence(b.owner.path, victim.path, &proof.fence), 0);
	assert_true(owner_wait(&b.owner, &proof.done, 1, 20));
	assert_int_equal(proof.status, 0);
	assert_true(has_ended(old, 5000));
	assert_false(has_ended(other, 0));
	assert_true(b.owner.path->up);
	iscsi_destroy_context(old);
	iscsi_destroy_context(other);
	path_free(victim.path);
	close_bench(&b);
}

/* The same by a path's own next login. */
static void reinstatement_by_itself(void **unused)
{
	static struct bench b;
	struct iscsi_context *old;

	open_bench(&b);
	path_disconnect(b.owner.path);
	old = abandoned_session(&b, b.owner.path->config.initiator_name, b.config.isid_qualifier);
	assert_int_equal(path_connect(b.owner.path), 0);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 2, 20));
	assert_true(has_ended(old, 5000));
	iscsi_destroy_context(old);
	close_bench(&b);
}

/* LOGICAL UNIT RESET and ABORT TASK SET with I/O in flight: every I/O ends once, and the path goes
 * on. */
static void task_management(void **unused)
{
	static struct bench b;

	open_bench(&b);
	for (unsigned i = 0; i < 2; i++) {
		struct proof proof = {.fence = {.done = on_proof, .owner = &proof}};
		unsigned ends = b.owner.done;

		submit_many(&b, IO_WRITE);
		assert_int_equal(i ? path_abort_tasks(b.owner.path, &proof.fence)
				   : path_reset_unit(b.owner.path, &proof.fence),
				 0);
		assert_true(owner_wait(&b.owner, &proof.done, 1, 20));
		assert_int_equal(proof.status, 0);
		assert_true(owner_wait(&b.owner, &b.owner.done, ends + MANY, 20));
	}
	assert_int_equal(b.owner.downs, 0);
	assert_int_equal(b.owner.ok + b.owner.other, 2 * MANY);
	close_bench(&b);
}

static void raw_commands(void **unused)
{
	static struct bench b;
	static uint8_t data[252];
	struct raw_command luns = {.command = {.cdb = {0xa0, [9] = sizeof data},
					       .cdb_bytes = 12,
					       .data = data,
					       .data_bytes = sizeof data}};
	struct raw_command groups = {.command = {.cdb = {0xa3, 0x0a, [9] = sizeof data},
						 .cdb_bytes = 12,
						 .data = data,
						 .data_bytes = sizeof data}};

	open_bench(&b);
	raw_submit(&b.owner, &luns);
	assert_true(owner_wait(&b.owner, &luns.ends, 1, 10));
	assert_int_equal(luns.command.result, PATH_OK);
	assert_int_equal(get_be32(data), 16); /* LUN 0 and 1 */
	assert_int_equal(luns.command.got_bytes, 24);
	raw_submit(&b.owner, &groups); /* tgtd knows no ALUA */
	assert_true(owner_wait(&b.owner, &groups.ends, 1, 10));
	assert_int_equal(groups.command.result, PATH_SENSE);
	assert_int_equal(groups.command.sense_key, 5);
	assert_int_equal(b.owner.downs, 0);
	close_bench(&b);
}

static void chap(void **unused)
{
	static struct bench b;
	const char *const account[] = {"--op", "new",	     "--mode",	       "account", "--user",
				       "joe",  "--password", "twelve-letters", NULL};
	const char *const bind_account[] = {"--op", "bind",   "--mode", "account", "--tid",
					    "1",    "--user", "joe",	NULL};
	static const char *const passwords[] = {NULL, "something-else", "twelve-letters"};

	open_bench(&b);
	path_free(b.owner.path);
	assert_int_equal(tgtadm(&b.daemon, account), 0);
	assert_int_equal(tgtadm(&b.daemon, bind_account), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(passwords); i++) {
		bool right = i == ARRAY_SIZE(passwords) - 1;

		b.config.user = passwords[i] ? "joe" : NULL;
		b.config.password = passwords[i];
		assert_int_equal(owner_open(&b.owner, b.loop, &b.config), 0);
		assert_int_equal(path_connect(b.owner.path), 0);
		assert_true(owner_wait(&b.owner, right ? &b.owner.ups : &b.owner.downs, 1, 10));
		if (!right) {
			assert_int_equal(b.owner.path->lost_by, PATH_DETECT_LOGIN);
			assert_non_null(strstr(b.owner.why, "CHAP authentication failed"));
			path_free(b.owner.path);
		}
	}
	close_bench(&b);
}

struct mpio_bench {
	struct daemon daemon;
	struct loop *loop;
	struct mpio *mpio;
	unsigned ready, done, failed;
	int status;
};

static void on_ready(void *arg, int status, const char *why)
{
	struct mpio_bench *b = arg;

	b->ready++;
	b->status = status;
}

static void on_done(struct io *io)
{
	struct mpio_bench *b = io->owner;

	b->done++;
	b->failed += io->status != 0;
}

static bool wait_count(struct loop *loop, const unsigned *count, unsigned want)
{
	struct owner waiter = {.loop = loop};

	return owner_wait(&waiter, count, want, 20);
}

/* Two logins to one unit are two nexuses of one device. */
static void two_paths(void **unused)
{
	static uint8_t data[MANY][4096];
	static struct io ios[MANY];
	static struct iovec iovs[MANY];
	struct mpio_config config = {.no_path_ns = 5 * NS_PER_S, .max_retries = 30};
	static struct mpio_bench b;

	start_daemon(&b.daemon);
	assert_int_equal(loop_new_real(&b.loop), 0);
	assert_int_equal(mpio_new(b.loop, &config, "tgtd", 1, &b.mpio), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct path_config path_config = {
		    .portal = b.daemon.portal, .target = target, .lun = 1, .isid_qualifier = i + 1};
		struct path *path;

		assert_int_equal(path_new_iscsi(b.loop, &path_config, &path), 0);
		assert_int_equal(mpio_add_path(b.mpio, path), 0);
	}
	mpio_start(b.mpio, 5 * NS_PER_S, on_ready, &b);
	assert_true(wait_count(b.loop, &b.ready, 1));
	assert_int_equal(b.status, 0);
	for (unsigned i = 0; i < MANY; i++) {
		iovs[i] = (struct iovec){data[i], sizeof data[i]};
		ios[i] = (struct io){.op = i % 2 ? IO_READ : IO_WRITE,
				     .offset_bytes = i * sizeof data[i],
				     .length_bytes = sizeof data[i],
				     .iov = &iovs[i],
				     .iov_count = 1,
				     .done = on_done,
				     .owner = &b};
		io_submit(mpio_layer(b.mpio), &ios[i]);
	}
	assert_true(wait_count(b.loop, &b.done, MANY));
	assert_int_equal(b.failed, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct mpio_path_info info;

		mpio_path_info(b.mpio, i, &info);
		assert_int_equal(info.state, MPIO_PATH_UP);
		assert_int_equal(info.ledger->ios, MANY / 2);
	}
	mpio_free(b.mpio);
	loop_free(b.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(write_and_read_back, stop_daemon),
	    cmocka_unit_test_teardown(killed_with_io_in_flight, stop_daemon),
	    cmocka_unit_test_teardown(silent_with_io_in_flight, stop_daemon),
	    cmocka_unit_test_teardown(reinstatement, stop_daemon),
	    cmocka_unit_test_teardown(reinstatement_by_itself, stop_daemon),
	    cmocka_unit_test_teardown(task_management, stop_daemon),
	    cmocka_unit_test_teardown(raw_commands, stop_daemon),
	    cmocka_unit_test_teardown(chap, stop_daemon),
	    cmocka_unit_test_teardown(two_paths, stop_daemon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
