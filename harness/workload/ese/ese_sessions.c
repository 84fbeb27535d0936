/* SPDX-License-Identifier: MIT
 *
 * The load of a server.
 *
 * Closed loop: sessions, each in turn with the next database: transaction, think time, and so on,
 * as Jetstress' threads do.  So latency sets the rate.
 *
 * Open loop: transactions arrive at random (Poisson) at a rate that keeps the transactional IOPS
 * at the target, whatever the storage does.  How many I/Os a transaction takes follows from cache
 * and database, so the rate is corrected by what was seen; the correction looks at work done, not
 * at latency.  Arrivals for which there is no place wait, and are counted.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "harness/workload/ese/ese_server_impl.h"

#define IOS_PER_TRANSACTION 2.04 /* to begin with */
#define PACE_NS		    (5 * NS_PER_S)
#define PACE_IOS_MIN	    50
#define IDLE_NS		    (100 * NS_PER_MS) /* all databases are passive copies */
#define THINK_MIN_NS	    NS_PER_US

/* Of few databases more may be in flight than of many. */
static unsigned slots(const struct ese_server *server)
{
	return ESE_OPEN_SLOTS * server->db_count;
}

static enum ese_op_kind throw_kind(struct ese_server *server)
{
	const struct ese_mix_config *mix = &server->config->mix;
	double dice = rng_unit(&server->dice);

	if (dice < mix->insert)
		return ESE_OP_INSERT;
	if (dice < mix->insert + mix->remove)
		return ESE_OP_DELETE;
	if (dice < mix->insert + mix->remove + mix->replace)
		return ESE_OP_REPLACE;
	return ESE_OP_READ;
}

static void op_ended(struct ese_op *op, int status);
static void rest(struct ese_session *session);

/* In turn, but for passive copies; NULL: there are no others. */
static struct ese_server_db *next_database(struct ese_server *server)
{
	for (unsigned i = 0; i < server->db_count; i++) {
		struct ese_server_db *db = &server->dbs[server->next_db];

		server->next_db = (server->next_db + 1) % server->db_count;
		if (db->active)
			return db;
	}
	return NULL;
}

static void submit(struct ese_session *session)
{
	struct ese_server *server = session->server;
	struct ese_server_db *db = next_database(server);

	if (!db) { /* all are passive copies now */
		rest(session);
		return;
	}
	db->ops++;
	session->db = db;
	session->op = (struct ese_op){
	    .kind = throw_kind(server),
	    .lazy = rng_unit(&server->dice) < server->config->lazy_commits,
	    .pick = true,
	    .done = op_ended,
	    .owner = session,
	};
	server->busy++;
	ese_db_submit(db->db, &session->op);
}

/* ---- closed loop ---- */

static void think(struct ese_session *session)
{
	struct ese_server *server = session->server;
	uint64_t think_ns = MAX_OF(server->config->think_ns, THINK_MIN_NS);

	loop_timer_set(server->loop, &session->timer, loop_now_ns(server->loop) + think_ns);
}

static void thought(void *arg)
{
	submit(arg);
}

static void begin_session(struct ese_session *session)
{
	struct ese_server *server = session->server;
	uint64_t think_ns = MAX_OF(server->config->think_ns, THINK_MIN_NS);

	session->alive = true;
	/* They begin anywhere within a think time, not all at once. */
	loop_timer_set(server->loop, &session->timer,
		       loop_now_ns(server->loop) + 1 + rng_below(&server->dice, think_ns));
}

/* ---- open loop ---- */

/* Transactions a second: what the target takes at the I/Os a transaction seen of late. */
static void pace(struct ese_server *server)
{
	uint64_t now_ns = loop_now_ns(server->loop), ios = 0;

	if (now_ns - server->paced_ns < PACE_NS || !ese_server_active_count(server))
		return;
	for (unsigned i = 0; i < server->db_count; i++) {
		const struct ese_db_counters *counters = ese_db_counters(server->dbs[i].db);

		if (server->dbs[i].active) /* what copies replay is no transaction */
			ios += counters->read_ios + counters->write_ios;
	}
	/* A low rate takes longer until it says something. */
	if (server->paced_ns && ios <= server->paced_ios + PACE_IOS_MIN)
		return;
	if (server->paced_ns && server->counts.transactions > server->paced_transactions) {
		double each = (double)(ios - server->paced_ios) /
			      (double)(server->counts.transactions - server->paced_transactions);
		double wanted = server->setup.iops_per_database / each;

		/* Writes come later than what caused them: not at once, so that it does not swing.
		 */
		server->per_s += (wanted - server->per_s) / 3;
	}
	server->paced_ns = now_ns;
	server->paced_ios = ios;
	server->paced_transactions = server->counts.transactions;
}

static void take_slot(struct ese_server *server)
{
	struct ese_session *session = server->free_slots;

	server->free_slots = session->next;
	submit(session);
}

static uint64_t next_arrival(struct ese_server *server)
{
	double gap_ns = rng_exponential(
	    &server->dice, (double)NS_PER_S / (server->per_s * ese_server_active_count(server)));

	return server->day_start_ns + exchange_day_after(&server->day,
							 server->arrival_ns - server->day_start_ns,
							 (uint64_t)gap_ns + 1);
}

static void arrive(void *arg)
{
	struct ese_server *server = arg;
	uint64_t now_ns = loop_now_ns(server->loop);

	pace(server);
	while (server->arrival_ns <= now_ns) {
		if (!ese_server_active_count(server)) {
			server->arrival_ns = now_ns + IDLE_NS;
			break;
		}
		if (server->free_slots) {
			take_slot(server);
		} else {
			server->counts.late++;
			server->waiting++;
		}
		server->arrival_ns = next_arrival(server);
	}
	loop_timer_set(server->loop, &server->arrival, server->arrival_ns);
}

/* The slot of an ended transaction; one that waits has it next. */
static void give_slot(struct ese_session *session)
{
	struct ese_server *server = session->server;

	session->next = server->free_slots;
	server->free_slots = session;
	if (server->running && server->waiting && ese_server_active_count(server)) {
		server->waiting--;
		take_slot(server);
	}
}

/* ---- both ---- */

static void count(struct ese_session *session, int status)
{
	struct ese_server *server = session->server;
	bool done = status == 0 || status == -ENOENT || status == -EEXIST;

	if (!done) {
		server->counts.failed++;
		return;
	}
	server->counts.transactions++;
	session->db->transactions++;
}

static void tell_full(struct ese_session *session)
{
	struct ese_server *server = session->server;
	const struct workload_env *env = server->setup.env;

	if (!server->running || !env->failed)
		return;
	snprintf(server->why, sizeof server->why,
		 "database %s is full: make database-size or the volume larger, or the run shorter",
		 session->db->name);
	env->failed(env->arg, server->why);
}

/* Its transaction is over. */
static void rest(struct ese_session *session)
{
	struct ese_server *server = session->server;

	if (server->config->loop == ESE_OPEN)
		give_slot(session);
	else if (server->running && session->index < server->session_count)
		think(session);
	else
		session->alive = false;
}

static void op_ended(struct ese_op *op, int status)
{
	struct ese_session *session = op->owner;
	struct ese_server *server = session->server;

	count(session, status);
	if (status == -ENOSPC)
		tell_full(session);
	session->db->ops--;
	ese_server_tell_quiet(session->db);
	rest(session);
	ese_server_unbusy(server);
}

static int make_sessions(struct ese_server *server, unsigned count)
{
	struct ese_session **grown;

	if (count <= server->session_room)
		return 0;
	grown = realloc(server->sessions, count * sizeof(struct ese_session *));
	if (!grown)
		return -ENOMEM;
	server->sessions = grown;
	while (server->session_room < count) {
		struct ese_session *session = calloc(1, sizeof *session);

		if (!session)
			return -ENOMEM;
		session->server = server;
		session->index = server->session_room;
		loop_timer_init(&session->timer, thought, session);
		server->sessions[server->session_room++] = session;
	}
	return 0;
}

static void begin_sessions(struct ese_server *server)
{
	for (unsigned i = 0; i < server->session_count; i++)
		if (!server->sessions[i]->alive)
			begin_session(server->sessions[i]);
}

void ese_server_set_sessions(struct ese_server *server, unsigned count)
{
	if (server->config->loop == ESE_OPEN)
		return;
	if (make_sessions(server, count) < 0)
		count = MIN_OF(count, server->session_room);
	server->session_count = count;
	/* Who thinks and is one too many goes at once. */
	for (unsigned i = count; i < server->session_room; i++)
		if (loop_timer_pending(&server->sessions[i]->timer)) {
			loop_timer_cancel(server->loop, &server->sessions[i]->timer);
			server->sessions[i]->alive = false;
		}
	if (server->running)
		begin_sessions(server);
}

unsigned ese_server_sessions(const struct ese_server *server)
{
	return server->session_count;
}

int ese_sessions_open(struct ese_server *server)
{
	int r = 0;

	rng_init(&server->dice, server->setup.env->seed, rng_stream_of(server->setup.host));
	loop_timer_init(&server->arrival, arrive, server);
	exchange_day_init(&server->day, &server->config->day);
	if (server->config->loop != ESE_OPEN)
		return 0;
	r = make_sessions(server, slots(server));
	for (unsigned i = 0; r == 0 && i < server->session_room; i++) {
		server->sessions[i]->next = server->free_slots;
		server->free_slots = server->sessions[i];
	}
	server->per_s = server->setup.iops_per_database / IOS_PER_TRANSACTION;
	return r;
}

void ese_sessions_close(struct ese_server *server)
{
	loop_timer_cancel(server->loop, &server->arrival);
	for (unsigned i = 0; i < server->session_room; i++) {
		loop_timer_cancel(server->loop, &server->sessions[i]->timer);
		free(server->sessions[i]);
	}
	free(server->sessions);
}

void ese_sessions_start(struct ese_server *server)
{
	if (server->config->loop == ESE_OPEN) {
		server->arrival_ns = server->day_start_ns = loop_now_ns(server->loop);
		server->paced_ns = 0;
		loop_timer_set(server->loop, &server->arrival, server->arrival_ns);
	} else {
		begin_sessions(server);
	}
}

void ese_sessions_stop(struct ese_server *server)
{
	loop_timer_cancel(server->loop, &server->arrival);
	server->waiting = 0;
	for (unsigned i = 0; i < server->db_count; i++) {
		struct ese_server_db *db = &server->dbs[i];

		db->cached_pages = ese_cache_counters(server->cache, ese_db_number(db->db))->cached;
	}
	for (unsigned i = 0; i < server->session_room; i++)
		if (loop_timer_pending(&server->sessions[i]->timer)) {
			loop_timer_cancel(server->loop, &server->sessions[i]->timer);
			server->sessions[i]->alive = false;
		}
}
