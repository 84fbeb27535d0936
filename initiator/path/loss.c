/* SPDX-License-Identifier: MIT
 *
 * The end of a login: what showed it, in one word for the record and in one line for people.
 *
 * libiscsi says "can not reconnect" of most failures, so the socket is asked first.  Of an Async
 * Message it tells nobody but its log, which has no context argument: hence the one it serves now
 * is known per thread.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

void session_lose(struct iscsi_path *p, enum path_detect by, const char *format, ...)
{
	va_list args;

	if (p->lost)
		return; /* the first cause counts */
	p->lost = true;
	p->path.lost_by = by;
	va_start(args, format);
	vsnprintf(p->why, sizeof p->why, format, args);
	va_end(args);
	/* libiscsi's messages may end in line feeds. */
	p->why[strcspn(p->why, "\r\n")] = 0;
}

const char *session_doing(const struct iscsi_path *p)
{
	static const char *const words[] = {
	    [ISCSI_DOWN] = "",
	    [ISCSI_CONNECTING] = " while connecting",
	    [ISCSI_LOGIN] = " during login",
	    [ISCSI_PROBING] = " while identifying the logical unit",
	    [ISCSI_UP] = "",
	};
	return words[p->phase];
}

enum path_detect session_detect(int error)
{
	switch (error) {
	case ECONNRESET:
	case ECONNREFUSED:
	case ECONNABORTED:
	case EPIPE:
		return PATH_DETECT_RESET;
	case ETIMEDOUT:
		return PATH_DETECT_TCP_TIMEOUT;
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL:
		return PATH_DETECT_LINK;
	default:
		return PATH_DETECT_PROTOCOL;
	}
}

static void lose_by_errno(struct iscsi_path *p, int error)
{
	session_lose(p, session_detect(error), "%s%s", strerror(error), session_doing(p));
}

void session_lose_socket(struct iscsi_path *p)
{
	int error = 0;
	socklen_t size = sizeof error;

	if (getsockopt(p->watch.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error)
		lose_by_errno(p, error);
	else
		session_lose_failed(p, 0);
}

void session_lose_closed(struct iscsi_path *p)
{
	session_lose(p, PATH_DETECT_CLOSED, "connection closed by the target%s", session_doing(p));
}

/* A socket that was closed by the other end waits for our close; one that was reset, or has timed
 * out, is over. */
static bool is_over(const struct iscsi_path *p)
{
	struct tcp_info info;
	socklen_t size = sizeof info;

	return getsockopt(p->watch.fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

void session_lose_failed(struct iscsi_path *p, int error)
{
	char byte;
	ssize_t n;

	if (p->lost)
		return;
	n = recv(p->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		lose_by_errno(p, errno);
	else if (n == 0 && is_over(p)) /* libiscsi has had the error already */
		lose_by_errno(p,
			      session_detect(error) == PATH_DETECT_PROTOCOL ? ECONNRESET : error);
	else if (n == 0)
		session_lose_closed(p);
	else
		session_lose(p, PATH_DETECT_PROTOCOL, "protocol error%s: %s", session_doing(p),
			     iscsi_get_error(p->ctx));
}

/* libiscsi puts the status of the response (class and detail, RFC 7143 11.13.5) into its text. */
unsigned login_status(const char *error)
{
	const char *at = strstr(error, "Status: ");

	at = at ? strrchr(at, '(') : NULL;
	return at ? (unsigned)strtoul(at + 1, NULL, 10) : 0;
}

void session_lose_login(struct iscsi_path *p)
{
	const char *error = iscsi_get_error(p->ctx);
	const char *text;

	switch (login_status(error)) {
	case 0x0201:
		text = p->path.config.user
			   ? "CHAP authentication failed: the target does not accept the user "
			     "or the password"
			   : "CHAP authentication failed: the target wants a user and none is "
			     "configured";
		break;
	case 0x0202:
		text = "this initiator is not authorized for the target";
		break;
	case 0x0203:
		text = "no such target at this portal";
		break;
	case 0x0204:
		text = "the target has been removed";
		break;
	case 0x0301:
		text = "the target's service is unavailable";
		break;
	case 0x0302:
		text = "the target is out of resources";
		break;
	default:
		text = strstr(error, "CHAP") ? "CHAP authentication failed" : error;
		break;
	}
	session_lose(p, PATH_DETECT_LOGIN, "login refused: %s", text);
}

static _Thread_local struct iscsi_path *serving;

void session_log(int level, const char *message)
{
	if (serving &&
	    (strstr(message, "target requests logout") ||
	     strstr(message, "target requests parameter") || strstr(message, "target will drop")))
		serving->asked = true;
}

int session_libiscsi(struct iscsi_path *p, int revents)
{
	int r;

	serving = p;
	errno = 0;
	r = iscsi_service(p->ctx, revents);
	serving = NULL;
	if (r < 0)
		session_lose_failed(p, errno);
	return r;
}
