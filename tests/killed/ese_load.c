/* SPDX-License-Identifier: MIT
 *
 * See ese_load.h.
 */
#include "tests/killed/ese_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

static void session_next(void *arg);

static void tell(struct ese_load *load, struct ese_load_event event)
{
	event.at_ns = loop_now_ns(load->config.loop);
	load->config.event(load->config.arg, &event);
}

/* Keys of the load lie anywhere in the key space. */
static uint64_t key_of(const struct ese_load *load, uint32_t key)
{
	struct rng rng;

	rng_init(&rng, 4711, key);
	return rng_below(&rng, ese_db_rules(load->db)->keys);
}

/* ---- open ---- */

static void opened(void *arg, int status)
{
	struct ese_load *load = arg;
	const struct ese_recovery_result *recovery = status ? NULL : ese_db_recovery(load->db);
	struct ese_load_event event = {.what = ESE_LOAD_OPENED, .status = status};

	load->phase = status < 0 ? LOAD_CLOSED : LOAD_OPEN;
	if (recovery) {
		event.recovered = 1;
		event.pages_mended = (uint32_t)recovery->pages_mended;
		event.redone = recovery->updates_done;
	}
	tell(load, event);
}

static void created(void *arg, int status)
{
	struct ese_load *load = arg;

	if (status < 0)
		opened(load, status);
	else
		ese_db_attach(load->db, opened, load);
}

static void attached(void *arg, int status)
{
	struct ese_load *load = arg;

	if (status == -ENOENT)
		ese_db_create(load->db, created, load);
	else
		opened(load, status);
}

void ese_load_open(struct ese_load *load)
{
	load->phase = LOAD_MOVING;
	ese_db_attach(load->db, attached, load);
}

/* ---- verify: every key, then every page ---- */

static void checksum_done(void *arg)
{
	struct ese_load *load = arg;
	const struct ese_checksum_result *result = ese_checksum_result(load->checksum);
	int status = result->status < 0 ? result->status : (int)(result->bad + result->unreadable);

	load->checksum = ese_checksum_free(load->checksum);
	tell(load, (struct ese_load_event){.what = ESE_LOAD_VERIFIED, .status = status});
}

static void checksum(struct ese_load *load)
{
	struct ese_checksum_config config = {
	    .loop = load->config.loop,
	    .pager = ese_db_pager(load->db),
	    .first = ESE_PAGE_FIRST,
	    .end = ese_db_used_pages(load->db),
	    .depth = 4,
	    .done = checksum_done,
	    .arg = load,
	};
	int r = ese_checksum_start(&config, &load->checksum);

	if (r < 0)
		tell(load, (struct ese_load_event){.what = ESE_LOAD_VERIFIED, .status = r});
}

static void key_read(struct ese_op *op, int status)
{
	struct ese_load_session *session = op->owner;
	struct ese_load *load = session->load;

	session->busy = false;
	load->busy--;
	if (status == 0 || status == -ENOENT) {
		load->exists[session->key] = status == 0;
		load->op_count[session->key] = 0;
		tell(load, (struct ese_load_event){.what = ESE_LOAD_FOUND,
						   .key = session->key,
						   .exists = status == 0,
						   .version = op->item.version});
	} else {
		load->verifying = false;
		tell(load, (struct ese_load_event){.what = ESE_LOAD_VERIFIED, .status = status});
	}
	loop_timer_set(load->config.loop, &session->timer, 0);
}

static void verify_step(struct ese_load_session *session)
{
	struct ese_load *load = session->load;

	if (load->next_key == load->config.keys) {
		if (load->busy == 0 && load->verifying) {
			load->verifying = false;
			checksum(load);
		}
		return;
	}
	session->key = load->next_key++;
	session->op = (struct ese_op){
	    .kind = ESE_OP_READ,
	    .key = key_of(load, session->key),
	    .done = key_read,
	    .owner = session,
	};
	session->busy = true;
	load->busy++;
	ese_db_submit(load->db, &session->op);
}

void ese_load_verify(struct ese_load *load)
{
	load->next_key = 0;
	load->verifying = true;
	for (unsigned i = 0; i < LOAD_SESSIONS; i++)
		loop_timer_set(load->config.loop, &load->sessions[i].timer, 0);
}

/* ---- load ---- */

static void op_ended(struct ese_op *op, int status)
{
	struct ese_load_session *session = op->owner;
	struct ese_load *load = session->load;
	static const bool exists[] = {
	    [ESE_OP_INSERT] = true, [ESE_OP_DELETE] = false, [ESE_OP_REPLACE] = true};

	session->busy = false;
	load->busy--;
	/* Others leave open whether it has been done: nobody touches the key again. */
	if (status != 0 && status != -ENOENT && status != -EEXIST && status != -ENOSPC)
		return;
	if (status == 0)
		load->exists[session->key] = exists[op->kind];
	tell(load, (struct ese_load_event){.what = ESE_LOAD_END,
					   .key = session->key,
					   .status = status,
					   .version = op->item.version,
					   .dbtime = op->dbtime});
	loop_timer_set(load->config.loop, &session->timer,
		       loop_now_ns(load->config.loop) +
			   rng_below(&load->rng, load->config.think_ns + 1));
}

static void load_step(struct ese_load_session *session)
{
	struct ese_load *load = session->load;
	uint32_t own = (uint32_t)(session - load->sessions);
	uint32_t key = own + LOAD_SESSIONS *
				 (uint32_t)rng_below(&load->rng, load->config.keys / LOAD_SESSIONS);
	enum ese_op_kind kind = ESE_OP_INSERT;

	if (load->op_count[key] == ORACLE_OPS_MAX)
		return;
	load->op_count[key]++;
	if (load->exists[key])
		kind = rng_below(&load->rng, 3) ? ESE_OP_REPLACE : ESE_OP_DELETE;
	session->key = key;
	session->op = (struct ese_op){
	    .kind = kind,
	    .lazy = rng_below(&load->rng, 10) < 7,
	    .key = key_of(load, key),
	    .done = op_ended,
	    .owner = session,
	};
	session->busy = true;
	load->busy++;
	tell(load,
	     (struct ese_load_event){.what = ESE_LOAD_BEGIN,
				     .key = key,
				     .kind = (uint8_t)(kind == ESE_OP_INSERT   ? ORACLE_INSERT
						       : kind == ESE_OP_DELETE ? ORACLE_DELETE
									       : ORACLE_REPLACE),
				     .lazy = session->op.lazy});
	ese_db_submit(load->db, &session->op);
}

static void session_next(void *arg)
{
	struct ese_load_session *session = arg;

	if (session->busy)
		return;
	if (session->load->verifying)
		verify_step(session);
	else if (session->load->running)
		load_step(session);
}

void ese_load_run(struct ese_load *load)
{
	load->running = true;
	for (unsigned i = 0; i < LOAD_SESSIONS; i++)
		loop_timer_set(load->config.loop, &load->sessions[i].timer, 0);
}

static void detached(void *arg, int status)
{
	((struct ese_load *)arg)->phase = LOAD_CLOSED;
	tell(arg, (struct ese_load_event){.what = ESE_LOAD_DETACHED, .status = status});
}

void ese_load_detach(struct ese_load *load)
{
	load->running = load->verifying = false;
	load->phase = LOAD_MOVING;
	ese_db_detach(load->db, detached, load);
}

void ese_load_drop(struct ese_load *load, workload_fn done, void *arg)
{
	load->running = load->verifying = false;
	load->phase = LOAD_MOVING;
	ese_db_drop(load->db, done, arg);
}

/* ---- life ---- */

static int make_parts(struct ese_load *load, struct err *err)
{
	const struct ese_load_config *config = &load->config;
	struct ese_cache_config cache = {
	    .max_pages = config->cache_pages,
	    .low_share = 0.05,
	    .high_share = 0.10,
	    .correlated_ns = NS_PER_MS,
	    .history_ns = 100 * NS_PER_S,
	    .history_max = 1000,
	};
	struct ese_db_config db = {
	    .name = "killed",
	    .creation = "killed",
	    .id = 1,
	    .seed = 42,
	    .initial_bytes = config->initial_bytes,
	    .max_bytes = config->max_bytes,
	    .verified = true,
	    .checkpoint_depth_bytes = config->checkpoint_depth_bytes,
	    .log_files = config->log_files,
	    .lazy_flush_ns = config->lazy_flush_ns,
	    .constants = ese_constants_default,
	};
	struct ese_db_env env = {
	    .loop = config->loop,
	    .seed = config->seed,
	    .place = {.device = config->device, .log_device = config->device},
	};
	int r = ese_cache_new(&cache, &load->cache);

	load->exists = calloc(config->keys, sizeof *load->exists);
	load->op_count = calloc(config->keys, sizeof *load->op_count);
	if (r < 0 || !load->exists || !load->op_count)
		return -ENOMEM;
	env.cache = load->cache;
	return ese_db_new(&env, &db, &load->db, err);
}

struct ese_load *ese_load_new(const struct ese_load_config *config)
{
	struct ese_load *load = calloc(1, sizeof *load);
	struct err err = {0};

	if (!load)
		return NULL;
	load->config = *config;
	rng_init(&load->rng, config->seed, rng_stream_of("load"));
	for (unsigned i = 0; i < LOAD_SESSIONS; i++) {
		load->sessions[i].load = load;
		loop_timer_init(&load->sessions[i].timer, session_next, &load->sessions[i]);
	}
	if (make_parts(load, &err) == 0)
		return load;
	err_print(&err);
	return ese_load_free(load);
}

struct ese_load *ese_load_free(struct ese_load *load)
{
	if (!load)
		return NULL;
	for (unsigned i = 0; i < LOAD_SESSIONS; i++)
		loop_timer_cancel(load->config.loop, &load->sessions[i].timer);
	ese_db_free(load->db);
	ese_cache_free(load->cache);
	free(load->exists);
	free(load->op_count);
	free(load);
	return NULL;
}
