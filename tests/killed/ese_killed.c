/* SPDX-License-Identifier: MIT
 *
 *   ese_killed SANLAB LAB CONTROL ROUNDS SEED
 *
 * A database of the Exchange engine on a volume of SANLAB target LAB.  The server that works on it
 * (this program again, `ese_killed serve LAB ...`), the target, or both are killed at a random
 * moment, ROUNDS times: under load, while the server recovers, or while it attaches.  Each time the
 * next server recovers the database from checkpoint and log, reads all keys and all pages, and this
 * program compares: see ese_oracle.h.  Exits 0, or 1 with the reason on stderr.
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
#include "tests/killed/ese_serve.h"
#include "tests/killed/killed_ready.h"

enum {
	EVENT_MS = 60000, /* without a sign of life */
	LOAD_MIN_MS = 20,
	LOAD_SPAN_MS = 500,
	LONG_LOAD_MS = 3000, /* long enough for the bound of lazy commits to mean something */
	EARLY_SPAN_MS = 150,
};
#define BOUND_NS (SERVE_LAZY_FLUSH_NS + 2 * NS_PER_S) /* on a machine that is busy otherwise */

enum victim { KILL_SERVER, KILL_TARGET, KILL_BOTH, KILL_EARLY, VICTIMS };

struct killer {
	char **argv;
	struct rng rng;
	struct oracle oracle;
	pid_t target, server;
	int events; /* from the server */
	unsigned round;
	uint64_t dead_ns; /* the first kill since the last recovery */
	bool dead, opened, verified, detached;
	bool finished; /* the server has ended by itself */
	unsigned kills[VICTIMS], recoveries;
	uint64_t redone, mended;
	const char *wrong;
	char text[400];
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void kill_process(pid_t *pid)
{
	int status;

	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
		;
	*pid = -1;
}

static bool wrong(struct killer *killer, const char *what)
{
	if (!killer->wrong) {
		snprintf(killer->text, sizeof killer->text, "%s", what);
		killer->wrong = killer->text;
	}
	return false;
}

/* ---- processes ---- */

static bool start_target(struct killer *killer)
{
	bool ready;
	int out[2];

	if (killer->target > 0)
		return true;
	if (pipe2(out, O_CLOEXEC))
		return wrong(killer, "no pipe");
	killer->target = fork();
	if (killer->target == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(killer->argv[1], killer->argv[1], "target", killer->argv[2], "--control",
		      killer->argv[3], (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	ready = killer->target > 0 && wait_ready(out[0]);
	close(out[0]);
	return ready || wrong(killer, "the target did not become ready");
}

static bool start_server(struct killer *killer)
{
	char seed[32], fd[16];
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		return wrong(killer, "no pipe");
	snprintf(seed, sizeof seed, "%llu", (unsigned long long)rng_u64(&killer->rng));
	killer->opened = killer->verified = killer->detached = killer->finished = false;
	killer->server = fork();
	if (killer->server == 0) {
		int to = dup(out[1]); /* without O_CLOEXEC */

		snprintf(fd, sizeof fd, "%d", to);
		execl("/proc/self/exe", killer->argv[0], "serve", killer->argv[2], seed, fd,
		      (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	killer->events = out[0];
	return killer->server > 0 || wrong(killer, "no server");
}

/* ---- what the server tells ---- */

static bool take_event(struct killer *killer, const struct ese_load_event *event)
{
	struct oracle *oracle = &killer->oracle;

	switch ((enum ese_load_what)event->what) {
	case ESE_LOAD_OPENED:
		if (event->status < 0)
			return wrong(killer, strerror(-event->status));
		killer->opened = true;
		killer->recoveries += event->recovered;
		killer->redone += event->redone;
		killer->mended += event->pages_mended;
		oracle_check_begin(oracle, killer->dead ? killer->dead_ns : now_ns(), BOUND_NS);
		return true;
	case ESE_LOAD_FOUND:
		return oracle_found(oracle, event->key, event->exists, event->version) ||
		       wrong(killer, oracle->why);
	case ESE_LOAD_VERIFIED:
		if (event->status)
			return wrong(killer, event->status < 0 ? strerror(-event->status)
							       : "pages are wrong");
		killer->verified = true;
		killer->dead = false;
		return oracle_check_end(oracle) || wrong(killer, oracle->why);
	case ESE_LOAD_BEGIN:
		oracle_begin(oracle, event->key, event->kind, event->lazy);
		return true;
	case ESE_LOAD_END:
		oracle_end(oracle, event->key, event->status < 0, event->version, event->dbtime,
			   event->at_ns);
		return true;
	case ESE_LOAD_DETACHED:
		killer->detached = true;
		return event->status == 0 || wrong(killer, strerror(-event->status));
	}
	return wrong(killer, "what the server says is not understood");
}

/* Takes what comes until UNTIL_NS (0: until the server is gone) or *STOP. */
static bool listen(struct killer *killer, uint64_t until_ns, const bool *stop)
{
	while (!(stop && *stop)) {
		struct pollfd poller = {.fd = killer->events, .events = POLLIN};
		struct ese_load_event event;
		uint64_t now = now_ns();
		int wait_ms = EVENT_MS, n;

		if (until_ns && now >= until_ns)
			return true;
		if (until_ns)
			wait_ms = (int)((until_ns - now) / NS_PER_MS) + 1;
		n = poll(&poller, 1, wait_ms);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && until_ns)
			return true;
		if (n <= 0)
			return wrong(killer, "the server says nothing any more");
		if (read(killer->events, &event, sizeof event) != sizeof event) {
			killer->finished = true;
			return true;
		}
		if (!take_event(killer, &event))
			return false;
	}
	return true;
}

/* The server is dead: what it said before. */
static bool hear_out(struct killer *killer)
{
	bool ok = listen(killer, 0, NULL);

	close(killer->events);
	killer->events = -1;
	return ok;
}

/* ---- rounds ---- */

static void note_death(struct killer *killer)
{
	if (!killer->dead)
		killer->dead_ns = now_ns();
	killer->dead = true;
}

static uint64_t after_ms(struct killer *killer, unsigned ms)
{
	return now_ns() + ms * NS_PER_MS;
}

static bool load_for_a_while(struct killer *killer)
{
	unsigned ms = LOAD_MIN_MS + (unsigned)rng_below(&killer->rng, LOAD_SPAN_MS);

	if (rng_below(&killer->rng, 10) == 0)
		ms = LONG_LOAD_MS;
	return listen(killer, after_ms(killer, ms), &killer->finished);
}

/* The target dies and comes back under a server that goes on. */
static bool kill_target_only(struct killer *killer)
{
	note_death(killer);
	kill_process(&killer->target);
	return start_target(killer) && load_for_a_while(killer);
}

static bool one_round(struct killer *killer)
{
	enum victim victim = (enum victim)rng_below(&killer->rng, VICTIMS);

	killer->kills[victim]++;
	if (!start_target(killer) || !start_server(killer))
		return false;
	if (victim == KILL_EARLY) {
		uint64_t until = after_ms(killer, (unsigned)rng_below(&killer->rng, EARLY_SPAN_MS));

		if (!listen(killer, until, &killer->finished))
			return false;
	} else if (!listen(killer, 0, &killer->verified)) {
		return false;
	} else if (!killer->verified) {
		return wrong(killer, "the server has ended before it had read everything");
	} else if (!load_for_a_while(killer)) {
		return false;
	}
	if (victim == KILL_TARGET && !kill_target_only(killer))
		return false;
	note_death(killer);
	if (victim == KILL_BOTH)
		kill_process(&killer->target);
	kill_process(&killer->server);
	return hear_out(killer);
}

/* The last server reads everything, works a little, and ends in order; another one finds all. */
static bool last_round(struct killer *killer)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!start_target(killer) || !start_server(killer) ||
		    !listen(killer, 0, &killer->verified) || !load_for_a_while(killer))
			return false;
		kill(killer->server, SIGTERM);
		if (!hear_out(killer))
			return false;
		if (!killer->detached)
			return wrong(killer, "the server did not end in order");
		while (waitpid(killer->server, NULL, 0) < 0 && errno == EINTR)
			;
		killer->server = -1;
	}
	return true;
}

static void tell(const struct killer *killer, unsigned rounds)
{
	const struct oracle *oracle = &killer->oracle;

	printf(
	    "%u rounds: killed %u servers, %u targets, %u times both, %u servers at their start; "
	    "%u recoveries, %llu updates redone, %llu torn pages mended; %llu durable commits all "
	    "there, of %llu lazy ones %llu lost within their bound, of %llu undecided %llu "
	    "there\n",
	    rounds, killer->kills[KILL_SERVER], killer->kills[KILL_TARGET],
	    killer->kills[KILL_BOTH], killer->kills[KILL_EARLY], killer->recoveries,
	    (unsigned long long)killer->redone, (unsigned long long)killer->mended,
	    (unsigned long long)oracle->durable, (unsigned long long)oracle->lazy,
	    (unsigned long long)oracle->lazy_lost, (unsigned long long)oracle->undecided,
	    (unsigned long long)oracle->undecided_there);
}

int main(int argc, char **argv)
{
	static struct killer killer;
	unsigned rounds;
	bool ok;

	if (argc == 5 && strcmp(argv[1], "serve") == 0)
		return ese_serve(argv[2], strtoull(argv[3], NULL, 10),
				 (int)strtol(argv[4], NULL, 10));
	if (argc != 6) {
		fprintf(stderr, "usage: ese_killed SANLAB LAB CONTROL ROUNDS SEED\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	killer.argv = argv;
	killer.target = killer.server = -1;
	rounds = (unsigned)strtoul(argv[4], NULL, 10);
	rng_init(&killer.rng, strtoull(argv[5], NULL, 10), rng_stream_of("killer"));
	ok = oracle_init(&killer.oracle, SERVE_KEYS);
	for (; ok && killer.round < rounds; killer.round++)
		ok = one_round(&killer);
	ok = ok && last_round(&killer);
	kill_process(&killer.server);
	kill_process(&killer.target);
	if (ok)
		tell(&killer, rounds);
	else
		fprintf(stderr, "failed in round %u of %u: %s; again: %s ... %s %s\n", killer.round,
			rounds, killer.wrong ? killer.wrong : "out of memory", argv[0], argv[4],
			argv[5]);
	oracle_done(&killer.oracle);
	return ok ? 0 : 1;
}
