/* SPDX-License-Identifier: MIT
 *
 * Lines of a plain or gzip file.  zlib reads both, in pieces; a gzip file may be of several parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/trace/trace_impl.h"

enum { CHUNK_BYTES = 64 * 1024 };

struct trace_lines {
	gzFile file;
	char *buf; /* CHUNK_BYTES + TRACE_LINE_MAX */
	size_t from, to;
	bool at_end, skipping; /* the rest of a line that is too long */
	int error;
	const char *why;
};

static int open_regular(const char *file, int *ret_fd, struct err *err)
{
	struct stat st;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;

	if (fd < 0) {
		r = -errno;
		return err_set(err, r, "cannot open trace '%.200s': %s", file, strerror(-r));
	}
	if (fstat(fd, &st) < 0)
		r = err_set(err, -errno, "cannot look at trace '%.200s': %s", file,
			    strerror(errno));
	else if (!S_ISREG(st.st_mode))
		r = err_set(err, -EINVAL, "trace '%.200s' is not a regular file", file);
	if (r < 0) {
		close(fd);
		return r;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	*ret_fd = fd;
	return 0;
}

int trace_lines_open(const char *file, struct trace_lines **ret_lines, struct err *err)
{
	struct trace_lines *lines;
	int fd = -1, r = open_regular(file, &fd, err);

	if (r < 0)
		return r;
	lines = calloc(1, sizeof *lines);
	if (lines)
		lines->buf = malloc(CHUNK_BYTES + TRACE_LINE_MAX);
	if (lines && lines->buf)
		lines->file = gzdopen(fd, "rb");
	if (!lines || !lines->file) {
		close(fd);
		trace_lines_close(lines);
		return err_set(err, -ENOMEM, "no memory to read trace '%.200s'", file);
	}
	gzbuffer(lines->file, CHUNK_BYTES);
	*ret_lines = lines;
	return 0;
}

struct trace_lines *trace_lines_close(struct trace_lines *lines)
{
	if (!lines)
		return NULL;
	if (lines->file)
		gzclose_r(lines->file);
	free(lines->buf);
	free(lines);
	return NULL;
}

/* Reads behind what is there; what is there moves to the front. */
static void fill(struct trace_lines *lines)
{
	int n, code;

	memmove(lines->buf, lines->buf + lines->from, lines->to - lines->from);
	lines->to -= lines->from;
	lines->from = 0;
	n = gzread(lines->file, lines->buf + lines->to, CHUNK_BYTES);
	if (n > 0) {
		lines->to += (size_t)n;
		return;
	}
	lines->at_end = true;
	lines->why = gzerror(lines->file, &code);
	if (n == 0 && code != Z_BUF_ERROR)
		return;
	lines->error = code == Z_ERRNO ? -EIO : -EBADMSG;
	if (code == Z_ERRNO)
		lines->why = strerror(errno);
	else if (code == Z_BUF_ERROR)
		lines->why = "the gzip file is cut off";
	else
		lines->why = "the gzip file is damaged";
}

/* The line from `from` on that ends before END is checked and handed out. */
static int hand_out(struct trace_lines *lines, size_t end, size_t next, char **ret_line,
		    const char **ret_why)
{
	char *line = lines->buf + lines->from;
	size_t length = end - lines->from;

	lines->from = next;
	if (lines->skipping || length >= TRACE_LINE_MAX) {
		*ret_why = "the line is longer than 8191 characters";
		lines->skipping = false;
		return -EINVAL;
	}
	if (memchr(line, '\0', length)) {
		*ret_why = "the line holds bytes that are no text";
		return -EINVAL;
	}
	if (length > 0 && line[length - 1] == '\r')
		length--;
	line[length] = '\0';
	*ret_line = line;
	return 1;
}

int trace_lines_next(struct trace_lines *lines, char **ret_line, const char **ret_why)
{
	for (;;) {
		size_t have = lines->to - lines->from;
		char *end = memchr(lines->buf + lines->from, '\n', have);

		if (end)
			return hand_out(lines, (size_t)(end - lines->buf),
					(size_t)(end - lines->buf) + 1, ret_line, ret_why);
		if (have >= TRACE_LINE_MAX) {
			lines->skipping = true;
			lines->from = lines->to;
		}
		if (!lines->at_end) {
			fill(lines);
			continue;
		}
		if (lines->error) {
			*ret_why = lines->why;
			return lines->error;
		}
		if (have == 0 && !lines->skipping)
			return 0;
		return hand_out(lines, lines->to, lines->to, ret_line, ret_why);
	}
}
