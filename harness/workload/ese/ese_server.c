/* SPDX-License-Identifier: MIT
 *
 * The life of a server: its databases are attached, loaded, and detached.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "harness/workload/ese/ese_server_impl.h"
#include "harness/workload/page.h"

#define BUFFERS_PER_DB	(32 * MIB)
#define BUFFERS_MAX	(1 * GIB)
#define CACHE_PAGES_MAX (UINT32_C(1) << 26)
#define HISTORY_MAX	100000

const char *const ese_stream_names[ESE_STREAMS] = {
    [ESE_DB_READ] = "db-read",	 [ESE_DB_WRITE] = "db-write", [ESE_LOG_WRITE] = "log-write",
    [ESE_BDM_READ] = "bdm-read", [ESE_LOG_READ] = "log-read",
};
const char *const ese_copy_stream_names[ESE_STREAMS] = {
    [ESE_DB_READ] = "copy-read",	[ESE_DB_WRITE] = "copy-write",
    [ESE_LOG_WRITE] = "copy-log-write", [ESE_BDM_READ] = "copy-bdm-read",
    [ESE_LOG_READ] = "copy-log-read",
};

/* ---- attach and detach: all databases together ---- */

static void step_ended(struct ese_server *server, int status)
{
	workload_fn done = server->done;

	if (status < 0 && server->status == 0)
		server->status = status;
	if (--server->steps)
		return;
	server->done = NULL;
	done(server->arg, server->status);
}

static void begin_steps(struct ese_server *server, workload_fn done, void *arg)
{
	assert(!server->done);
	server->done = done;
	server->arg = arg;
	server->status = 0;
	server->steps = 1; /* until all have begun */
}

static const char *reason(int status)
{
	switch (status) {
	case -ENOENT:
		return "there is none on the volume (databases: new makes one)";
	case -EMEDIUMTYPE:
		return "the one that is there has other sizes or constants (databases: new makes "
		       "another)";
	case -EUCLEAN:
		return "its header, its log or pages of it are damaged (databases: new makes "
		       "another)";
	default:
		return strerror(-status);
	}
}

static void fail(struct ese_server_db *db, const char *what, int status)
{
	struct ese_server *server = db->server;
	const struct workload_env *env = server->setup.env;

	if (server->why[0] || status == -ECANCELED)
		return;
	snprintf(server->why, sizeof server->why, "database %s cannot be %s: %s", db->name, what,
		 reason(status));
	if (env->failed)
		env->failed(env->arg, server->why);
}

static void attached(void *arg, int status)
{
	struct ese_server_db *db = arg;

	db->attached = status == 0;
	if (status < 0)
		fail(db, "attached", status);
	step_ended(db->server, status);
}

static void created(void *arg, int status)
{
	struct ese_server_db *db = arg;

	if (status == 0) {
		ese_db_attach(db->db, attached, db);
		return;
	}
	fail(db, "made", status);
	step_ended(db->server, status);
}

static void looked(void *arg, int status)
{
	struct ese_server_db *db = arg;

	if (status == -ENOENT && db->server->config->source == ESE_SOURCE_AUTO)
		ese_db_create(db->db, created, db);
	else
		attached(db, status);
}

void ese_server_attach(struct ese_server *server, workload_fn done, void *arg)
{
	bool again = server->was_attached;

	begin_steps(server, done, arg);
	server->was_attached = true;
	for (unsigned i = 0; i < server->db_count; i++) {
		struct ese_server_db *db = &server->dbs[i];

		if (db->given_up)
			continue;
		server->steps++;
		if (again)
			ese_db_attach(db->db, attached, db);
		else if (server->config->source == ESE_SOURCE_NEW)
			ese_db_create(db->db, created, db);
		else
			ese_db_attach(db->db, looked, db);
	}
	step_ended(server, 0);
}

double ese_server_progress(const struct ese_server *server)
{
	double sum = 0;

	for (unsigned i = 0; i < server->db_count; i++)
		sum += ese_db_progress(server->dbs[i].db);
	return sum / server->db_count;
}

static void detached(void *arg, int status)
{
	struct ese_server_db *db = arg;

	db->attached = false;
	step_ended(db->server, status);
}

void ese_server_detach(struct ese_server *server, workload_fn done, void *arg)
{
	begin_steps(server, done, arg);
	for (unsigned i = 0; i < server->db_count; i++)
		if (server->dbs[i].attached) {
			server->steps++;
			ese_db_detach(server->dbs[i].db, detached, &server->dbs[i]);
		}
	step_ended(server, 0);
}

void ese_server_drop(struct ese_server *server, workload_fn done, void *arg)
{
	begin_steps(server, done, arg);
	for (unsigned i = 0; i < server->db_count; i++)
		if (server->dbs[i].attached) {
			server->steps++;
			ese_db_drop(server->dbs[i].db, detached, &server->dbs[i]);
		}
	step_ended(server, 0);
}

/* ---- start and stop ---- */

void ese_server_start(struct ese_server *server)
{
	server->running = true;
	for (unsigned i = 0; i < server->db_count; i++) {
		ese_bdm_start(&server->dbs[i].bdm);
		ese_feed_start(&server->dbs[i].feed);
	}
	ese_sessions_start(server);
}

static void tell_idle(struct ese_server *server)
{
	workload_fn idle = server->idle;

	if (server->busy || !idle)
		return;
	server->idle = NULL;
	idle(server->idle_arg, 0);
}

void ese_server_unbusy(struct ese_server *server)
{
	assert(server->busy > 0);
	server->busy--;
	tell_idle(server);
}

void ese_server_stop(struct ese_server *server, workload_fn done, void *arg)
{
	assert(!server->idle);
	server->running = false;
	ese_sessions_stop(server);
	for (unsigned i = 0; i < server->db_count; i++) {
		ese_bdm_stop(&server->dbs[i].bdm);
		ese_feed_stop(&server->dbs[i].feed);
	}
	server->idle = done;
	server->idle_arg = arg;
	tell_idle(server);
}

/* ---- new and free ---- */

static void file_closed(void *arg, uint64_t generation)
{
	struct ese_server_db *db = arg;

	ese_feed_closed(&db->feed, generation);
	if (db->taps.file_closed)
		db->taps.file_closed(db->taps.arg, generation);
}

static void written(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct ese_server_db *db = arg;

	if (db->taps.written)
		db->taps.written(db->taps.arg, lgpos, segments, bytes);
}

/* The database's own callbacks have another argument than the run's. */
static void mismatch(void *arg, const struct mismatch *found)
{
	struct ese_server_db *db = arg;
	const struct workload_env *env = db->server->setup.env;

	if (env->mismatch)
		env->mismatch(env->arg, found);
}

static void describe_database(const struct ese_server *server, struct ese_db_config *ret_config)
{
	const struct ese_config *config = server->config;

	*ret_config = (struct ese_db_config){
	    .initial_bytes = config->initial_bytes,
	    .max_bytes = config->database_bytes,
	    .verified = config->content == ESE_VERIFIED,
	    .checkpoint_depth_bytes = config->checkpoint_bytes,
	    .log_files = (unsigned)config->log_files,
	    .log_fua = config->log_fua,
	    .lazy_flush_ns = config->lazy_flush_ns,
	    .keys =
		{
		    .kind = (enum ese_keys)config->access.kind,
		    .theta = config->access.exponent,
		    .hot_share = config->access.hot_pages,
		    .hot_hits = config->access.hot_share,
		},
	};
	ese_config_constants(config, &ret_config->constants);
	page_run_uuid(server->setup.env->seed, server->setup.wall_ns, ret_config->creation);
}

static int open_database(struct ese_server *server, unsigned index, struct err *err)
{
	const struct workload_env *env = server->setup.env;
	struct ese_server_db *db = &server->dbs[index];
	struct ese_db_config config;
	struct ese_db_env db_env;
	struct stream *streams;
	const char *identity;

	db->server = server;
	db->place = server->setup.places[index];
	snprintf(db->name, sizeof db->name, "%s", db->place.database->volume);
	describe_database(server, &config);
	config.name = db->name;
	/* A copy is the same database. */
	identity = db->place.copy_of ? db->place.copy_of : db->place.database->volume;
	config.id = (uint32_t)rng_stream_of(identity);
	config.seed = env->seed ^ rng_stream_of(identity);
	db->active = !db->place.copy_of;
	streams = db->active ? db->place.streams : db->place.copy_streams;
	db_env = (struct ese_db_env){
	    .loop = server->loop,
	    .seed = config.seed,
	    .cache = server->cache,
	    .place = {db->place.database, db->place.log, db->place.log_base_bytes},
	    .streams =
		{
		    .db_read = &streams[ESE_DB_READ],
		    .db_write = &streams[ESE_DB_WRITE],
		    .log_write = &streams[ESE_LOG_WRITE],
		    .log_read = &streams[ESE_LOG_READ],
		},
	    .check = server->setup.check,
	    .mismatch = mismatch,
	    .file_closed = file_closed,
	    .written = written,
	    .arg = db,
	};
	ese_server_copies_open(db);
	ese_bdm_open(&db->bdm, db);
	ese_feed_open(&db->feed, db);
	return ese_db_new(&db_env, &config, &db->db, err);
}

static int open_cache(struct ese_server *server, struct err *err)
{
	const struct ese_config *config = server->config;
	uint64_t max = config->cache_max_bytes / ESE_PAGE_BYTES * server->db_count;
	struct ese_cache_config cache = {
	    .max_pages = (uint32_t)MIN_OF(max, CACHE_PAGES_MAX),
	    .low_share = config->constants.flush_start,
	    .high_share = config->constants.flush_stop,
	    .correlated_ns = config->constants.correlated_ns,
	    .history_ns = config->constants.history_ns,
	    .history_max = HISTORY_MAX,
	};
	int r;

	if (server->db_count > ESE_CACHE_DATABASES_MAX)
		return err_set(err, -EINVAL,
			       "host %s has %u databases; %u is the most a host may have",
			       server->setup.host, server->db_count, ESE_CACHE_DATABASES_MAX);
	r = ese_cache_new(&cache, &server->cache);
	server->buffers = buf_pool_new(MIN_OF(BUFFERS_PER_DB * server->db_count, BUFFERS_MAX));
	if (r < 0 || !server->buffers)
		return err_set(err, r < 0 ? r : -ENOMEM, "no memory for the cache of host %s",
			       server->setup.host);
	return 0;
}

int ese_server_new(const struct ese_server_setup *setup, struct ese_server **ret_server,
		   struct err *err)
{
	struct ese_server *server = calloc(1, sizeof *server);
	int r;

	assert(setup->database_count > 0);
	if (!server)
		return err_set(err, -ENOMEM, "no memory for host %s", setup->host);
	server->setup = *setup;
	server->loop = setup->env->loop;
	server->config = setup->config;
	server->db_count = setup->database_count;
	server->dbs = calloc(server->db_count, sizeof *server->dbs);
	r = server->dbs ? open_cache(server, err) : -ENOMEM;
	for (unsigned i = 0; r == 0 && i < server->db_count; i++)
		r = open_database(server, i, err);
	if (r == 0)
		r = ese_sessions_open(server);
	if (r < 0) {
		err_set(err, r, "host %s cannot be set up: %s", setup->host, strerror(-r));
		ese_server_free(server);
		return r;
	}
	*ret_server = server;
	return 0;
}

struct ese_server *ese_server_free(struct ese_server *server)
{
	if (!server)
		return NULL;
	ese_sessions_close(server);
	for (unsigned i = 0; server->dbs && i < server->db_count; i++) {
		struct ese_server_db *db = &server->dbs[i];

		if (!db->server)
			continue;
		ese_bdm_stop(&db->bdm);
		ese_feed_close(&db->feed);
		ese_server_copies_close(db);
		ese_db_free(db->db);
	}
	free(server->dbs);
	if (server->cache)
		ese_cache_free(server->cache);
	if (server->buffers)
		buf_pool_free(server->buffers);
	free(server);
	return NULL;
}

/* ---- what is asked of it ---- */

const char *ese_server_host(const struct ese_server *server)
{
	return server->setup.host;
}

double ese_server_day_share(const struct ese_server *server, uint64_t from_ns, uint64_t to_ns)
{
	if (server->day.flat || from_ns < server->day_start_ns)
		return 1;
	return exchange_day_mean(&server->day, from_ns - server->day_start_ns,
				 to_ns - server->day_start_ns);
}

double ese_server_target_iops(const struct ese_server *server)
{
	return server->setup.iops_per_database * ese_server_active_count(server);
}

double ese_server_mean_target_iops(const struct ese_server *server,
				   const struct ese_server_counts *begun,
				   const struct ese_server_counts *ended)
{
	if (ended->at_ns <= begun->at_ns)
		return ese_server_target_iops(server);
	return server->setup.iops_per_database * (double)(ended->active_ns - begun->active_ns) /
	       (double)(ended->at_ns - begun->at_ns);
}

unsigned ese_server_database_count(const struct ese_server *server)
{
	return server->db_count;
}

struct ese_db *ese_server_database(struct ese_server *server, unsigned index)
{
	return server->dbs[index].db;
}

const struct ese_place *ese_server_place(const struct ese_server *server, unsigned index)
{
	return &server->dbs[index].place;
}

uint64_t ese_server_transactions(const struct ese_server *server, unsigned index)
{
	return server->dbs[index].transactions;
}

uint64_t ese_server_cache_used_bytes(const struct ese_server *server)
{
	return (uint64_t)ese_cache_used(server->cache) * ESE_PAGE_BYTES;
}

uint64_t ese_server_dirty_pages(const struct ese_server *server)
{
	uint64_t pages = 0;

	for (unsigned i = 0; i < server->db_count; i++)
		pages += ese_cache_counters(server->cache, ese_db_number(server->dbs[i].db))->dirty;
	return pages;
}

uint64_t ese_server_cache_min_bytes(const struct ese_server *server)
{
	return server->config->cache_min_bytes * server->db_count;
}

uint64_t ese_server_cache_max_bytes(const struct ese_server *server)
{
	return server->config->cache_max_bytes * server->db_count;
}

void ese_server_counts(const struct ese_server *server, struct ese_server_counts *ret_counts)
{
	*ret_counts = server->counts;
	ret_counts->at_ns = loop_now_ns(server->loop);
	ret_counts->active_ns +=
	    ese_server_active_count(server) * (ret_counts->at_ns - server->roles_since_ns);
	for (unsigned i = 0; i < server->db_count; i++) {
		const struct ese_db_counters *counters = ese_db_counters(server->dbs[i].db);

		ret_counts->stalls += counters->stalls;
		ret_counts->log_stalls += counters->log_waits;
	}
}
