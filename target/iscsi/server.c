/* SPDX-License-Identifier: MIT
 *
 * The server: its targets and portals, the choice of a member for a redirected login, and the
 * burial of what has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/log.h"
#include "base/rng.h"
#include "target/iscsi/conn.h"

#define CLOSE_WAIT_NS (10 * NS_PER_S)

static void reap(void *arg)
{
	iscsi_server_reap(arg);
}

static int system_random(void *arg, uint8_t *to, size_t bytes)
{
	return rng_system_bytes(to, bytes);
}

/* A challenge that an initiator sends us, and that we have just sent somebody. */
static bool challenge_is_ours(void *arg, const uint8_t *challenge, size_t bytes)
{
	const struct iscsi_server *server = arg;
	const struct iscsi_conn *conn;

	for (conn = TAILQ_FIRST(&server->conns); conn; conn = TAILQ_NEXT(conn, entry)) {
		const struct chap *chap = conn->login ? &conn->login->chap : NULL;

		if (chap && chap->state == CHAP_WANT_RESPONSE && chap->challenge_bytes == bytes &&
		    memcmp(chap->challenge, challenge, bytes) == 0)
			return true;
	}
	return false;
}

void iscsi_server_secure(struct iscsi_server *server, const struct iscsi_security *security)
{
	server->security = *security;
	server->chap.secrets = security->secrets;
	server->chap.mutual_user = security->mutual_user;
}

struct iscsi_server *iscsi_server_new(struct loop *loop, struct buf_pool *pool)
{
	struct iscsi_server *server = calloc(1, sizeof *server);

	if (!server)
		return NULL;
	server->loop = loop;
	server->pool = pool;
	TAILQ_INIT(&server->conns);
	TAILQ_INIT(&server->dead);
	TAILQ_INIT(&server->sessions);
	SLIST_INIT(&server->spare_commands);
	loop_task_init(&server->reap, reap, server);
	if (iscsi_witness_open(server) < 0) {
		free(server);
		return NULL;
	}
	server->chap =
	    (struct chap_env){.arg = server, .random = system_random, .is_ours = challenge_is_ours};
	return server;
}

static void bury(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_conn *heir = conn->heir;

	if (heir) {
		heir->ancestor = NULL;
		iscsi_conn_login_finish(heir, session);
	}
	if (session)
		session->conn_count--;
	iscsi_conn_free(conn);
}

void iscsi_server_reap(struct iscsi_server *server)
{
	struct iscsi_conn *conn, *next;
	struct iscsi_session *session;

	for (conn = TAILQ_FIRST(&server->conns); conn; conn = next) {
		next = TAILQ_NEXT(conn, entry);
		if (conn->failed)
			iscsi_conn_kill(conn);
	}
	for (conn = TAILQ_FIRST(&server->dead); conn; conn = next) {
		next = TAILQ_NEXT(conn, entry);
		if (conn->command_count == 0)
			bury(conn);
	}
	/* A session that settles may let a login finish, which makes a new one: begin again. */
	do {
		for (session = TAILQ_FIRST(&server->sessions); session;
		     session = TAILQ_NEXT(session, entry)) {
			if (iscsi_session_settle(session))
				break;
		}
	} while (session);
}

static void give_up(void *arg)
{
	*(bool *)arg = true;
}

/* Aborted tasks end when their drives have let go of the buffers; false: some do not. */
static bool wait_for_tasks(struct iscsi_server *server)
{
	struct loop_timer patience;
	bool over = false;

	loop_timer_init(&patience, give_up, &over);
	loop_timer_set(server->loop, &patience, loop_now_ns(server->loop) + CLOSE_WAIT_NS);
	while (server->conn_count + server->session_count > 0 && !over) {
		if (loop_turn(server->loop, true) < 0)
			break;
	}
	loop_timer_cancel(server->loop, &patience);
	return server->conn_count + server->session_count == 0;
}

struct iscsi_server *iscsi_server_free(struct iscsi_server *server)
{
	struct iscsi_conn *conn;

	if (!server)
		return NULL;
	for (size_t i = 0; i < server->portal_count; i++) {
		iscsi_listener_close(server->portals[i]);
		iscsi_portal_drain_end(server->portals[i]);
	}
	while ((conn = TAILQ_FIRST(&server->conns)))
		iscsi_conn_kill(conn);
	iscsi_server_reap(server);
	if (!wait_for_tasks(server)) {
		log_error("%u sessions have tasks that do not end", server->session_count);
		return server;
	}
	loop_task_cancel(server->loop, &server->reap);
	iscsi_command_clear_slabs(server);
	iscsi_witness_close(server);
	for (size_t i = 0; i < server->portal_count; i++)
		free(server->portals[i]);
	free(server);
	return NULL;
}

int iscsi_server_add_target(struct iscsi_server *server, struct scsi_target *target)
{
	char name[ISCSI_NAME_BYTES];

	if (server->target_count == ISCSI_MAX_TARGETS)
		return -ENOSPC;
	if (iscsi_name_normalise(scsi_target_name(target), name) < 0 ||
	    strcmp(name, scsi_target_name(target)) != 0)
		return -EINVAL;
	if (iscsi_server_find_target(server, name))
		return -EEXIST;
	server->targets[server->target_count++] = target;
	return 0;
}

struct scsi_target *iscsi_server_find_target(const struct iscsi_server *server, const char *name)
{
	for (size_t i = 0; i < server->target_count; i++) {
		if (strcmp(scsi_target_name(server->targets[i]), name) == 0)
			return server->targets[i];
	}
	return NULL;
}

/* ---- portals ---- */

int iscsi_server_add_portal(struct iscsi_server *server, const struct iscsi_portal_config *config,
			    struct iscsi_portal **ret_portal)
{
	struct iscsi_portal *portal;

	if (server->portal_count == ISCSI_MAX_PORTALS)
		return -ENOSPC;
	portal = calloc(1, sizeof *portal);
	if (!portal)
		return -ENOMEM;
	portal->server = server;
	portal->config = *config;
	loop_timer_init(&portal->drain, iscsi_portal_drain_over, portal);
	snprintf(portal->owner, sizeof portal->owner, "%s", config->owner ? config->owner : "");
	portal->config.owner = portal->owner;
	server->portals[server->portal_count++] = portal;
	*ret_portal = portal;
	return 0;
}

int iscsi_server_listen(struct iscsi_server *server, const struct iscsi_portal_config *config,
			struct iscsi_portal **ret_portal, struct err *err)
{
	struct iscsi_portal *portal;
	int r = iscsi_server_add_portal(server, config, &portal);

	if (r < 0)
		return err_set(err, r, "cannot add portal %s: %s", config->address.text,
			       r == -ENOSPC ? "too many portals" : "out of memory");
	r = iscsi_listener_open(portal, err);
	if (r < 0) {
		server->portal_count--;
		free(portal);
		return r;
	}
	if (ret_portal)
		*ret_portal = portal;
	return 0;
}

size_t iscsi_server_portal_count(const struct iscsi_server *server)
{
	return server->portal_count;
}

struct iscsi_portal *iscsi_server_portal(struct iscsi_server *server, size_t index)
{
	return index < server->portal_count ? server->portals[index] : NULL;
}

const struct iscsi_portal_config *iscsi_portal_config(const struct iscsi_portal *portal)
{
	return &portal->config;
}

const struct iscsi_portal_counters *iscsi_portal_counters(const struct iscsi_portal *portal)
{
	return &portal->counters;
}

bool iscsi_portal_is_down(const struct iscsi_portal *portal)
{
	return portal->down;
}

void iscsi_portal_address(const struct iscsi_portal *portal, const char *local_host, char *out,
			  size_t size)
{
	const struct cfg_portal *address = &portal->config.address;
	bool wildcard = strcmp(address->host, "0.0.0.0") == 0 || strcmp(address->host, "::") == 0;
	const char *host = wildcard && local_host[0] ? local_host : address->host;

	snprintf(out, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, address->port);
}

struct iscsi_portal *iscsi_server_pick_member(struct iscsi_server *server,
					      const struct iscsi_portal *from)
{
	uint64_t now_ns = loop_now_ns(server->loop);
	struct iscsi_portal *best = NULL;
	uint64_t best_load = 0;

	for (size_t i = 0; i < server->portal_count; i++) {
		struct iscsi_portal *portal = server->portals[i];
		uint64_t load = portal->counters.connections_now;

		if (portal == from || portal->config.redirects || portal->down ||
		    portal->draining || portal->silent)
			continue;
		if (now_ns < portal->promised_until_ns)
			load += portal->promised;
		if (!best || load < best_load) {
			best = portal;
			best_load = load;
		}
	}
	return best;
}

unsigned iscsi_portal_reset(struct iscsi_portal *portal, const char *initiator)
{
	struct iscsi_conn *conn, *next;
	unsigned count = 0;

	for (conn = TAILQ_FIRST(&portal->server->conns); conn; conn = next) {
		next = TAILQ_NEXT(conn, entry);
		if (conn->portal != portal ||
		    (initiator && strcasecmp(conn->initiator_name, initiator) != 0))
			continue;
		conn->end_why = "reset by the target";
		if (conn->shell->reset)
			conn->shell->reset(conn->shell_arg);
		iscsi_conn_kill(conn);
		count++;
	}
	portal->counters.resets += count;
	return count;
}

int iscsi_portal_set_down(struct iscsi_portal *portal, bool down, struct err *err)
{
	int r;

	iscsi_portal_drain_end(portal);
	if (portal->down == down)
		return 0;
	if (down) {
		iscsi_listener_close(portal);
		portal->down = true;
		iscsi_portal_reset(portal, NULL);
		return 0;
	}
	r = iscsi_listener_open(portal, err);
	if (r == 0)
		portal->down = false;
	return r;
}
