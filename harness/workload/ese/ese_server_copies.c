/* SPDX-License-Identifier: MIT
 *
 * Databases that are passive copies, and single ones that come and go while the others work.
 */
#include <assert.h>

#include "harness/workload/ese/ese_server_impl.h"

#define LOOK_AGAIN_NS (10 * NS_PER_MS)

bool ese_server_is_active(const struct ese_server *server, unsigned index)
{
	return server->dbs[index].active;
}

unsigned ese_server_active_count(const struct ese_server *server)
{
	unsigned count = 0;

	for (unsigned i = 0; i < server->db_count; i++)
		count += server->dbs[i].active;
	return count;
}

void ese_server_set_active(struct ese_server *server, unsigned index, bool active)
{
	struct ese_server_counts counts;

	ese_server_counts(server, &counts);
	server->counts.active_ns = counts.active_ns;
	server->roles_since_ns = counts.at_ns;
	server->dbs[index].active = active;
	server->paced_ns = 0; /* what is counted is another sum from now on */
}

void ese_server_tell_quiet(struct ese_server_db *db)
{
	workload_fn quiet = db->quiet;

	if (!quiet || db->ops)
		return;
	db->quiet = NULL;
	quiet(db->quiet_arg, 0);
}

void ese_server_quiesce(struct ese_server *server, unsigned index, workload_fn done, void *arg)
{
	struct ese_server_db *db = &server->dbs[index];

	assert(!db->active && !db->quiet);
	db->quiet = done;
	db->quiet_arg = arg;
	ese_server_tell_quiet(db);
}

void ese_server_tap_log(struct ese_server *server, unsigned index, const struct ese_log_taps *taps)
{
	server->dbs[index].taps = *taps;
}

struct stream *ese_server_streams(const struct ese_server_db *db)
{
	return db->active || !db->place.copy_streams ? db->place.streams : db->place.copy_streams;
}

/* ---- one database alone ---- */

static void moved(void *arg, int status)
{
	struct ese_server_db *db = arg;
	workload_fn done = db->move_done;

	db->move_done = NULL;
	db->attached = ese_db_is_open(db->db);
	if (db->attached && db->server->running)
		ese_bdm_start(&db->bdm);
	done(db->move_arg, status);
}

/* Maintenance reads under way end first. */
static void drop_when_idle(void *arg)
{
	struct ese_server_db *db = arg;

	if (db->bdm.in_flight)
		loop_timer_set(db->server->loop, &db->move_timer,
			       loop_now_ns(db->server->loop) + LOOK_AGAIN_NS);
	else
		ese_db_drop(db->db, moved, db);
}

static void begin(struct ese_server_db *db, workload_fn done, void *arg)
{
	assert(!db->move_done);
	db->move_done = done;
	db->move_arg = arg;
}

void ese_server_drop_database(struct ese_server *server, unsigned index, workload_fn done,
			      void *arg)
{
	struct ese_server_db *db = &server->dbs[index];

	begin(db, done, arg);
	db->given_up = true;
	ese_bdm_stop(&db->bdm);
	drop_when_idle(db);
}

void ese_server_attach_database(struct ese_server *server, unsigned index, workload_fn done,
				void *arg)
{
	struct ese_server_db *db = &server->dbs[index];

	begin(db, done, arg);
	db->given_up = false;
	ese_db_attach(db->db, moved, db);
}

bool ese_server_gave_up(const struct ese_server *server, unsigned index)
{
	return server->dbs[index].given_up;
}

void ese_server_copies_open(struct ese_server_db *db)
{
	loop_timer_init(&db->move_timer, drop_when_idle, db);
}

void ese_server_copies_close(struct ese_server_db *db)
{
	loop_timer_cancel(db->server->loop, &db->move_timer);
}
