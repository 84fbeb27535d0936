/* SPDX-License-Identifier: MIT
 *
 * Who listens on a TCP port: its socket's inode from /proc/net/tcp and tcp6, then the process that
 * has it open.  Only for the message of a failed start.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "target/iscsi/server.h"

enum { STATE_LISTEN = 0x0a, LINE_BYTES = 512 };

/* The inode of the listening socket in one table; 0: none. */
static unsigned long inode_in(const char *table, uint16_t port)
{
	char line[LINE_BYTES];
	unsigned long inode = 0;
	FILE *file = fopen(table, "re");

	if (!file)
		return 0;
	while (inode == 0 && fgets(line, sizeof line, file)) {
		/* sl local_address:port rem_address:port st queues timers retrnsmt uid timeout
		 * inode */
		char *field[10] = {NULL}, *save = NULL;
		const char *colon;
		unsigned n = 0;

		for (char *word = strtok_r(line, " ", &save); word && n < ARRAY_SIZE(field);
		     word = strtok_r(NULL, " ", &save))
			field[n++] = word;
		if (n < ARRAY_SIZE(field) || strtoul(field[3], NULL, 16) != STATE_LISTEN)
			continue;
		colon = strchr(field[1], ':');
		if (colon && strtoul(colon + 1, NULL, 16) == port)
			inode = strtoul(field[9], NULL, 10);
	}
	fclose(file);
	return inode;
}

static bool process_has(const char *pid, unsigned long inode)
{
	char path[PATH_MAX], wanted[64], link[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
	dir = opendir(path);
	if (!dir)
		return false;
	/* cppcheck-suppress readdirCalled ; this stream is nobody else's */
	while (!found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		found = strcmp(link, wanted) == 0;
	}
	closedir(dir);
	return found;
}

static void process_name(const char *pid, char *out, size_t size)
{
	char path[PATH_MAX], name[64] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof name, file))
			name[strcspn(name, "\n")] = '\0';
		fclose(file);
	}
	if (name[0])
		snprintf(out, size, "process %s (%s)", pid, name);
	else
		snprintf(out, size, "process %s", pid);
}

bool iscsi_port_holder(uint16_t port, char *out, size_t size)
{
	unsigned long inode = inode_in("/proc/net/tcp", port);
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (inode == 0)
		inode = inode_in("/proc/net/tcp6", port);
	if (inode == 0)
		return false;
	dir = opendir("/proc");
	if (!dir)
		return false;
	/* cppcheck-suppress readdirCalled ; this stream is nobody else's */
	while (!found && (entry = readdir(dir))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (process_has(entry->d_name, inode)) {
			process_name(entry->d_name, out, size);
			found = true;
		}
	}
	closedir(dir);
	return found;
}
