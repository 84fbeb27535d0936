/* SPDX-License-Identifier: MIT
 *
 * Until a target that was just started serves.
 */
#ifndef SANLAB_TESTS_KILLED_READY_H
#define SANLAB_TESTS_KILLED_READY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { READY_MS = 60000 };

/* Reads the target's output until a line begins with "ready". */
static inline bool wait_ready(int fd)
{
	char text[4096];
	size_t used = 0;

	while (used < sizeof text - 1) {
		struct pollfd poller = {.fd = fd, .events = POLLIN};
		if (poll(&poller, 1, READY_MS) <= 0)
			return false;
		ssize_t got = read(fd, text + used, sizeof text - 1 - used);
		if (got <= 0)
			return false;
		used += (size_t)got;
		text[used] = 0;
		if (strncmp(text, "ready", 5) == 0 || strstr(text, "\nready"))
			return true;
	}
	return false;
}

#endif
