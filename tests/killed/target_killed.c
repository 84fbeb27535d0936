/* SPDX-License-Identifier: MIT
 *
 *   target_killed SANLAB LAB CONTROL PORTAL TARGET MIB ROUNDS SEED
 *
 * Starts SANLAB target LAB, writes to the volume, kills the target at a random moment, starts it
 * again and reads everything; ROUNDS times.  The target of the last round is left running, its pid
 * on stdout.  Exits 0, or 1 with the reason on stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/killed/killed_load.h"

enum { READY_MS = 60000, LOAD_MIN_MS = 20, LOAD_SPAN_MS = 500 };

static pid_t target_pid = -1;

static void kill_target(void)
{
	int status;
	if (target_pid <= 0)
		return;
	kill(target_pid, SIGKILL);
	while (waitpid(target_pid, &status, 0) < 0 && errno == EINTR)
		;
	target_pid = -1;
}

/* Reads the target's output until a line begins with "ready". */
static bool wait_ready(int fd)
{
	char text[4096];
	size_t used = 0;

	while (used < sizeof text - 1) {
		struct pollfd poller = {.fd = fd, .events = POLLIN};
		if (poll(&poller, 1, READY_MS) <= 0)
			return false;
		ssize_t got = read(fd, text + used, sizeof text - 1 - used);
		if (got <= 0)
			return false;
		used += (size_t)got;
		text[used] = 0;
		if (strncmp(text, "ready", 5) == 0 || strstr(text, "\nready"))
			return true;
	}
	return false;
}

static bool start_target(const char *sanlab, const char *lab, const char *control)
{
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		return false;
	target_pid = fork();
	if (target_pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(sanlab, sanlab, "target", lab, "--control", control, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	bool ready = target_pid > 0 && wait_ready(out[0]);
	close(out[0]);
	if (!ready)
		fprintf(stderr, "the target did not become ready\n");
	return ready;
}

static bool one_round(struct load *load, char **argv, bool last)
{
	if (!start_target(argv[1], argv[2], argv[3]) || !load_connect(load) || !load_verify(load))
		return false;
	if (last) {
		load_disconnect(load);
		return true;
	}
	unsigned span = LOAD_MIN_MS + (unsigned)rng_below(&load->rng, LOAD_SPAN_MS);
	if (!load_run(load, span))
		return false;
	kill_target();
	return load_take_rest(load);
}

int main(int argc, char **argv)
{
	struct load load;

	if (argc != 9) {
		fprintf(stderr, "usage: target_killed SANLAB LAB CONTROL PORTAL TARGET MIB ROUNDS "
				"SEED\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	uint32_t blocks = (uint32_t)(strtoul(argv[6], NULL, 10) * MIB / LOAD_BLOCK_BYTES);
	unsigned rounds = (unsigned)strtoul(argv[7], NULL, 10);
	if (!load_init(&load, argv[4], argv[5], blocks, strtoull(argv[8], NULL, 10)))
		return 1;
	for (unsigned round = 0; round <= rounds; round++) {
		if (one_round(&load, argv, round == rounds))
			continue;
		fprintf(stderr, "failed in round %u of %u; again: %s ... %s %s\n", round, rounds,
			argv[0], argv[7], argv[8]);
		kill_target();
		load_done(&load);
		return 1;
	}
	fprintf(stderr, "%u kills, %llu writes and %llu UNMAPs answered, all there\n", rounds,
		(unsigned long long)load.writes, (unsigned long long)load.unmaps);
	printf("%d\n", (int)target_pid);
	load_done(&load);
	return 0;
}
