/* SPDX-License-Identifier: MIT
 *
 * events.jsonl: one object a line, on disk as soon as it happened, so that a run that is killed
 * leaves its story behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/report/directory.h"
#include "harness/report/json_make.h"
#include "harness/report/report.h"

struct event_log {
	int fd; /* -1: events go nowhere */
	uint64_t seq;
	int status;
};

int event_log_open(const char *dir, struct event_log **ret_log, struct err *err)
{
	struct event_log *log = calloc(1, sizeof *log);
	char *file = NULL;
	int r = 0;

	if (!log)
		return err_set(err, -ENOMEM, "out of memory");
	log->fd = -1;
	if (dir) {
		r = directory_make(dir, err);
		if (r == 0 && asprintf(&file, "%s/events.jsonl", dir) < 0)
			r = err_set(err, -ENOMEM, "out of memory");
	}
	if (r == 0 && dir) {
		log->fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
		if (log->fd < 0) {
			r = err_set(err, -errno, "cannot write events: %s", strerror(errno));
			err_where(err, "%s", file);
		}
		free(file);
	}
	if (r < 0) {
		free(log);
		return r;
	}
	*ret_log = log;
	return 0;
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t wrote = write(fd, text, size);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		text += wrote;
		size -= (size_t)wrote;
	}
	return 0;
}

/* One write(2) with the newline: a reader that follows the file sees whole lines. */
static int emit_line(const struct event_log *log, json_t *line)
{
	enum { FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(15) };
	size_t size = json_dumpb(line, NULL, 0, FLAGS);
	char *text = size ? malloc(size + 1) : NULL;
	int r;

	if (!text)
		return -ENOMEM;
	json_dumpb(line, text, size, FLAGS);
	text[size] = '\n';
	r = write_all(log->fd, text, size + 1);
	free(text);
	return r;
}

void event_log_emit(struct event_log *log, const char *type, uint64_t at_ns, json_t *event)
{
	json_t *line;
	int r = 0;

	if (!log || log->fd < 0) {
		json_decref(event);
		return;
	}
	line = json_object();
	/* The caller's members come after, and cannot replace, these. */
	if (json_object_set_new(line, "seq", make_count(log->seq++)) < 0 ||
	    json_object_set_new(line, "t", make_string(type)) < 0 ||
	    json_object_set_new(line, "at_ns", make_count(at_ns)) < 0 ||
	    (event && json_object_update_missing(line, event) < 0))
		r = -ENOMEM;
	if (r == 0)
		r = emit_line(log, line);
	if (r < 0 && log->status == 0)
		log->status = r;
	json_decref(line);
	json_decref(event);
}

int event_log_status(const struct event_log *log)
{
	return log->status;
}

struct event_log *event_log_close(struct event_log *log)
{
	if (!log)
		return NULL;
	if (log->fd >= 0)
		close(log->fd);
	free(log);
	return NULL;
}
