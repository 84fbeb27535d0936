/* SPDX-License-Identifier: MIT
 *
 * The control socket's client side: one request, one answer, with a deadline.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/control/control.h"

enum { ANSWER_LIMIT_BYTES = 16 * 1024 * 1024 };

static int connect_socket(const char *path, uint64_t timeout_ns)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
				.tv_usec = (suseconds_t)(timeout_ns % NS_PER_S / NS_PER_US)};
	int fd;

	if (strlen(path) >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Each call on the socket gives up after the limit: an answer comes in few of them. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (connect(fd, (const void *)&address, sizeof address) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int send_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

static int receive_line(int fd, char **ret_line, size_t *ret_size)
{
	size_t used = 0, room = 4096;
	char *line = malloc(room);
	int r = line ? 0 : -ENOMEM;

	while (!r && !(used && line[used - 1] == '\n')) {
		ssize_t n;

		if (used == room) {
			char *larger = room < ANSWER_LIMIT_BYTES ? realloc(line, room * 2) : NULL;

			if (!larger) {
				r = -EMSGSIZE;
				break;
			}
			line = larger;
			room *= 2;
		}
		n = recv(fd, line + used, room - used, 0);
		if (n > 0)
			used += (size_t)n;
		else if (n == 0)
			r = -ECONNRESET;
		else if (errno != EINTR)
			r = errno == EAGAIN ? -ETIMEDOUT : -errno;
	}
	if (r) {
		free(line);
		return r;
	}
	*ret_line = line;
	*ret_size = used;
	return 0;
}

static int judge_answer(json_t *answer, json_t **ret_answer, struct err *err)
{
	const char *hint = json_string_value(json_object_get(answer, "hint"));
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (json_is_true(json_object_get(answer, "ok"))) {
		*ret_answer = answer;
		return 0;
	}
	err_set(err, -EREMOTEIO, "%s", error ? error : "the target gave no reason");
	if (hint && hint[0])
		err_hint(err, "%s", hint);
	json_decref(answer);
	return -EREMOTEIO;
}

int control_call(const char *socket_path, const json_t *request, uint64_t timeout_ns,
		 json_t **ret_answer, struct err *err)
{
	char *text = json_dumps(request, JSON_COMPACT), *line = NULL;
	size_t size = 0;
	json_t *answer;
	int fd, r;

	if (!text)
		return err_set(err, -ENOMEM, "out of memory");
	fd = connect_socket(socket_path, timeout_ns);
	r = fd < 0 ? fd : send_all(fd, text, strlen(text));
	if (!r)
		r = send_all(fd, "\n", 1);
	if (!r)
		r = receive_line(fd, &line, &size);
	if (fd >= 0)
		close(fd);
	free(text);
	if (r) {
		err_set(err, r, "no answer from the target at %s: %s", socket_path, strerror(-r));
		err_hint(err, "is the target still running? `sanlab target LAB.yaml --control "
			      "SOCKET` names the socket");
		return r;
	}
	answer = json_loadb(line, size, 0, NULL);
	free(line);
	if (!answer)
		return err_set(err, -EPROTO, "the target's answer is not JSON");
	return judge_answer(answer, ret_answer, err);
}
