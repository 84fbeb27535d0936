/* SPDX-License-Identifier: MIT
 *
 * The control socket's server side: a listener and at most CLIENT_LIMIT line-based clients on the
 * target's loop.
 */
#include "target/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"

enum { CLIENT_LIMIT = 16, LINE_LIMIT_BYTES = 64 * 1024 };

struct client {
	struct control *control;
	struct loop_watch watch;
	char *line;
	size_t used;
	char *answer; /* what the socket did not take yet */
	size_t answer_bytes, answer_sent;
	LIST_ENTRY(client) entry;
};

struct control {
	struct loop *loop;
	struct target *target;
	struct loop_watch watch;
	struct sockaddr_un address;
	LIST_HEAD(, client) clients;
	unsigned client_count;
};

static void client_close(struct client *client)
{
	loop_watch_del(client->control->loop, &client->watch);
	close(client->watch.fd);
	LIST_REMOVE(client, entry);
	client->control->client_count--;
	free(client->answer);
	free(client->line);
	free(client);
}

/* False when the client is gone. */
static bool client_flush(struct client *client)
{
	while (client->answer_sent < client->answer_bytes) {
		ssize_t n =
		    send(client->watch.fd, client->answer + client->answer_sent,
			 client->answer_bytes - client->answer_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_watch_set(client->control->loop, &client->watch, EPOLLOUT);
			return true;
		}
		if (n < 0) {
			client_close(client);
			return false;
		}
		client->answer_sent += (size_t)n;
	}
	free(client->answer);
	client->answer = NULL;
	client->answer_bytes = client->answer_sent = 0;
	loop_watch_set(client->control->loop, &client->watch, EPOLLIN);
	return true;
}

static json_t *answer_line(struct control *control, const char *line, size_t size)
{
	json_error_t error;
	json_t *request = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
	json_t *answer;

	if (!request)
		return json_pack("{s:b, s:s, s:s}", "ok", 0, "error", error.text, "hint",
				 "send one JSON object a line");
	answer = control_execute(control->loop, control->target, request);
	json_decref(request);
	return answer;
}

/* Answers every whole line there is; one answer at a time is under way. */
static bool client_answer(struct client *client)
{
	char *end;

	while (!client->answer && (end = memchr(client->line, '\n', client->used))) {
		size_t size = (size_t)(end - client->line);
		json_t *answer = answer_line(client->control, client->line, size);
		char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

		json_decref(answer);
		memmove(client->line, end + 1, client->used - size - 1);
		client->used -= size + 1;
		if (!text) {
			client_close(client);
			return false;
		}
		client->answer_bytes = strlen(text);
		text[client->answer_bytes++] = '\n'; /* in place of the final zero */
		client->answer = text;
		if (!client_flush(client))
			return false;
	}
	return true;
}

static void client_ready(void *arg, uint32_t ready)
{
	struct client *client = arg;
	ssize_t n;

	if (client->answer && !client_flush(client))
		return;
	if (!(ready & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	n = recv(client->watch.fd, client->line + client->used, LINE_LIMIT_BYTES - client->used,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(client);
		return;
	}
	client->used += (size_t)n;
	if (client_answer(client) && client->used == LINE_LIMIT_BYTES)
		client_close(client);
}

static void control_accept(void *arg, uint32_t ready)
{
	struct control *control = arg;
	int fd = accept4(control->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	if (fd < 0)
		return;
	client = control->client_count < CLIENT_LIMIT ? calloc(1, sizeof(*client)) : NULL;
	if (client)
		client->line = malloc(LINE_LIMIT_BYTES);
	if (!client || !client->line) {
		free(client);
		close(fd);
		return;
	}
	client->control = control;
	client->watch = (struct loop_watch){.fd = fd, .fn = client_ready, .arg = client};
	LIST_INSERT_HEAD(&control->clients, client, entry);
	control->client_count++;
	if (loop_watch_add(control->loop, &client->watch, EPOLLIN) < 0)
		client_close(client);
}

/* A dead target's socket refuses connections; a live one must not be taken over.  An ordinary file
 * refuses them too, and is nobody's to delete. */
static bool socket_is_stale(const struct sockaddr_un *address)
{
	struct stat st;
	bool stale;
	int fd;

	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const void *)address, sizeof *address) < 0 && errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int bind_socket(int fd, const struct sockaddr_un *address)
{
	mode_t before = umask(0177);
	int r = bind(fd, (const void *)address, sizeof *address) < 0 ? -errno : 0;

	if (r == -EADDRINUSE && socket_is_stale(address)) {
		unlink(address->sun_path);
		r = bind(fd, (const void *)address, sizeof *address) < 0 ? -errno : 0;
	}
	umask(before);
	return r;
}

int control_open(struct loop *loop, struct target *target, const char *socket_path,
		 struct control **ret_control, struct err *err)
{
	struct control *control;
	int r, fd;

	if (strlen(socket_path) >= sizeof control->address.sun_path)
		return err_set(err, -ENAMETOOLONG, "control socket path is too long: %s",
			       socket_path);
	control = calloc(1, sizeof(*control));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!control || fd < 0) {
		free(control);
		if (fd >= 0)
			close(fd);
		return err_set(err, -ENOMEM, "cannot make the control socket");
	}
	control->loop = loop;
	control->target = target;
	control->address.sun_family = AF_UNIX;
	memcpy(control->address.sun_path, socket_path, strlen(socket_path) + 1);
	control->watch = (struct loop_watch){.fd = fd, .fn = control_accept, .arg = control};
	LIST_INIT(&control->clients);
	r = bind_socket(fd, &control->address);
	if (!r && listen(fd, CLIENT_LIMIT) < 0)
		r = -errno;
	if (!r)
		r = loop_watch_add(loop, &control->watch, EPOLLIN);
	if (r) {
		close(fd);
		free(control);
		return err_set(err, r, "cannot listen on control socket %s: %s", socket_path,
			       strerror(-r));
	}
	*ret_control = control;
	return 0;
}

struct control *control_close(struct control *control)
{
	struct client *client, *next;

	if (!control)
		return NULL;
	for (client = LIST_FIRST(&control->clients); client; client = next) {
		next = LIST_NEXT(client, entry);
		client_close(client);
	}
	loop_watch_del(control->loop, &control->watch);
	close(control->watch.fd);
	unlink(control->address.sun_path);
	free(control);
	return NULL;
}
