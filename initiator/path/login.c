/* SPDX-License-Identifier: MIT
 *
 * TCP connect and iSCSI login, with redirections (status 0101h) followed up to a limit.
 *
 * The ISID is explicit: distinct for every path of the initiator, so that each is its own I_T
 * nexus, and the same at every login of a path, so that a target that has not noticed the end of
 * the old session ends it now (session reinstatement, RFC 7143 6.3.5) together with its tasks.
 *
 * libiscsi begins a login without CHAP in the operational stage.  tgt 1.0.85 looks for the session
 * to reinstate only when the security stage ends: a login that has none leaves the old session
 * alive, beside the new one.  So where a session of the path may still be alive its login goes
 * through that stage: without a user the offer is "CHAP,None" under a stand-in name, of which a
 * target without CHAP takes None.  One that refuses is asked again in the plain way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

/* ":3260" or nothing. */
static bool port_is_sound(const char *text)
{
	unsigned long port = 0;
	size_t digits;

	if (!*text)
		return true;
	digits = strspn(text + 1, "0123456789");
	if (*text != ':' || digits == 0 || digits > 5 || text[1 + digits])
		return false;
	for (size_t i = 1; i <= digits; i++)
		port = port * 10 + (unsigned long)(text[i] - '0');
	return port > 0 && port <= UINT16_MAX;
}

enum { CLASS_INITIATOR = 0x02, NO_SUCH_TARGET = 0x0203 };

bool login_portal_is_numeric(const char *portal)
{
	char host[64];
	uint8_t address[16];
	bool six = *portal == '[';
	const char *from = portal + six;
	size_t n = strcspn(from, six ? "]" : ":");

	if (n == 0 || n >= sizeof host || (six && !from[n]))
		return false;
	memcpy(host, from, n);
	host[n] = 0;
	return inet_pton(six ? AF_INET6 : AF_INET, host, address) == 1 &&
	       port_is_sound(from + n + six);
}

const char *login_address(const struct path_config *config, const char *portal)
{
	const char *address = config->dial ? config->dial(config->dial_arg, portal) : portal;

	assert(login_portal_is_numeric(address)); /* a name would block the loop */
	return address;
}

int login_configure(struct iscsi_context *ctx, const struct path_config *c, bool reinstates)
{
	uint64_t user_timeout_ms = MIN_OF(c->tcp_user_timeout_ns / NS_PER_MS, UINT64_C(3600000));

	iscsi_set_noautoreconnect(ctx, 1);
	iscsi_set_reconnect_max_retries(ctx, 0);
	iscsi_set_log_fn(ctx, session_log);
	iscsi_set_log_level(ctx, ISCSI_ASYNC_LOG_LEVEL);
	iscsi_set_tcp_user_timeout(ctx, (int)MAX_OF(user_timeout_ms, UINT64_C(1)));
	if (iscsi_set_targetname(ctx, c->target) != 0 ||
	    iscsi_set_session_type(ctx, ISCSI_SESSION_NORMAL) != 0 ||
	    iscsi_set_header_digest(ctx, c->header_digest ? ISCSI_HEADER_DIGEST_CRC32C_NONE
							  : ISCSI_HEADER_DIGEST_NONE) != 0)
		return -EINVAL;
	/* 24 + 16 bits: all of the qualifier is in the ISID. */
	if (iscsi_set_isid_random(ctx, c->isid_qualifier >> 16, c->isid_qualifier & 0xffff) != 0)
		return -EINVAL;
	if (c->user && c->password)
		return iscsi_set_initiator_username_pwd(ctx, c->user, c->password) ? -EINVAL : 0;
	if (reinstates)
		return iscsi_set_initiator_username_pwd(ctx, "none", "none") ? -EINVAL : 0;
	return 0;
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	bool six = a->sa_family == AF_INET6;
	size_t at =
	    six ? offsetof(struct sockaddr_in6, sin6_addr) : offsetof(struct sockaddr_in, sin_addr);

	return memcmp((const char *)a + at, (const char *)b + at,
		      six ? sizeof(struct in6_addr) : sizeof(struct in_addr)) == 0;
}

static void take_redirect(struct iscsi_path *p)
{
	const char *to = iscsi_get_target_address(p->ctx);

	if (p->hops >= ISCSI_REDIRECT_HOPS) {
		session_lose(p, PATH_DETECT_LOGIN,
			     "login redirected more than %d times, last to %s", ISCSI_REDIRECT_HOPS,
			     to);
	} else if (!login_portal_is_numeric(to) || strlen(to) >= sizeof p->at_portal) {
		session_lose(p, PATH_DETECT_LOGIN,
			     "login redirected to %s, which is no numeric address", to);
	} else if (strcmp(to, p->at_portal) == 0) {
		session_lose(p, PATH_DETECT_LOGIN, "login at %s redirected to itself", to);
	} else {
		p->hops++;
		snprintf(p->at_portal, sizeof p->at_portal, "%s", to);
		p->redirected = true;
	}
}

bool login_wants_plain(unsigned status)
{
	return status >> 8 == CLASS_INITIATOR && status != NO_SUCH_TARGET;
}

/* Refused, or cancelled because the connection ended. */
static void login_failed(struct iscsi_path *p)
{
	unsigned status = login_status(iscsi_get_error(p->ctx));

	if (login_wants_plain(status) && !p->path.config.user && p->lingers && !p->plain)
		p->plain = p->again = true;
	else if (strstr(iscsi_get_error(p->ctx), "log in"))
		session_lose_login(p);
	else
		session_lose_failed(p, errno);
}

static void logged_in(struct iscsi_path *p)
{
	p->lingers = true;
	probe_start(p);
}

static void login_done(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_path *p = arg;

	if (p->tearing)
		return;
	p->heard = true;
	if (status == SCSI_STATUS_REDIRECT)
		take_redirect(p);
	else if (status != SCSI_STATUS_GOOD)
		login_failed(p);
	else
		logged_in(p);
}

void login_link_lost(struct link_watch_entry *entry, const char *interface)
{
	struct iscsi_path *p = entry->owner;

	session_lose(p, PATH_DETECT_LINK, "no link on %s%s", interface, session_doing(p));
	loop_task_queue(p->path.loop, &p->later);
}

/* A connection within this host does not depend on any link. */
static void watch_link(struct iscsi_path *p)
{
	struct sockaddr_storage local = {0}, remote = {0};
	socklen_t local_size = sizeof local, remote_size = sizeof remote;
	struct sockaddr *here = (struct sockaddr *)&local, *there = (struct sockaddr *)&remote;

	if (!p->path.config.links || getsockname(p->watch.fd, here, &local_size) < 0 ||
	    getpeername(p->watch.fd, there, &remote_size) < 0 || same_host(here, there))
		return;
	/* Without it, silence is noticed by other means. */
	(void)link_watch_add(p->path.config.links, &p->link, here);
}

/* Also called a second time by libiscsi when an established connection ends. */
void login_connected(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_path *p = arg;

	if (!p || p->tearing || p->lost)
		return;
	if (status != SCSI_STATUS_GOOD) {
		session_lose_failed(p, errno);
		return;
	}
	if (p->phase != ISCSI_CONNECTING)
		return;
	p->phase = ISCSI_LOGIN;
	watch_link(p);
	if (iscsi_login_async(ctx, login_done, p) != 0)
		session_lose(p, PATH_DETECT_LOGIN, "cannot log in: %s", iscsi_get_error(ctx));
}
