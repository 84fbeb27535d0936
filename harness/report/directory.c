/* SPDX-License-Identifier: MIT
 *
 * The directory of a run: made, locked for as long as the run lasts, freed of earlier results.
 *
 * The lock is the kernel's, on the directory itself: it goes with its holder however that ends, and
 * leaves no file behind.
 */
#include "harness/report/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "harness/report/report.h"

struct report_dir {
	int fd;
};

int directory_make(const char *dir, struct err *err)
{
	char *path = strdup(dir);
	int r = 0;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	for (char *p = path + 1; *path && r == 0; p++) {
		char cut = *p;

		if (cut != '/' && cut != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST) {
			r = err_set(err, -errno, "cannot make the directory: %s", strerror(errno));
			err_where(err, "%s", path);
		}
		if (cut == '\0')
			break;
		*p = '/';
	}
	free(path);
	return r;
}

/* The process that has the lock, from "1: FLOCK ADVISORY WRITE 1234 fd:01:5678 0 EOF"; 0: the
 * kernel does not tell. */
static long lock_holder(int fd)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[200], wanted[64];
	long holder = 0;
	struct stat st;

	if (!locks || fstat(fd, &st) < 0) {
		if (locks)
			fclose(locks);
		return 0;
	}
	snprintf(wanted, sizeof wanted, " %02x:%02x:%llu ", major(st.st_dev), minor(st.st_dev),
		 (unsigned long long)st.st_ino);
	while (!holder && fgets(line, sizeof line, locks)) {
		const char *write = strstr(line, "WRITE ");

		if (strstr(line, "FLOCK") && write && strstr(line, wanted))
			holder = strtol(write + strlen("WRITE "), NULL, 10);
	}
	fclose(locks);
	return holder;
}

static int lock(const char *dir, int fd, struct err *err)
{
	long holder;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK) {
		err_set(err, -errno, "cannot lock the directory: %s", strerror(errno));
	} else {
		holder = lock_holder(fd);
		if (holder > 0)
			err_set(err, -EBUSY, "another run writes there: process %ld", holder);
		else
			err_set(err, -EBUSY, "another run writes there");
		err_hint(err, "give this one a directory of its own, or wait");
	}
	err_where(err, "%s", dir);
	return err->code;
}

int report_dir_open(const char *dir, struct report_dir **ret_dir, struct err *err)
{
	struct report_dir *opened;
	int r;

	if (!dir) {
		*ret_dir = NULL;
		return 0;
	}
	r = directory_make(dir, err);
	if (r < 0)
		return r;
	opened = calloc(1, sizeof *opened);
	if (!opened)
		return err_set(err, -ENOMEM, "out of memory");
	opened->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opened->fd < 0) {
		r = err_set(err, -errno, "cannot open the directory: %s", strerror(errno));
		err_where(err, "%s", dir);
	} else {
		r = lock(dir, opened->fd, err);
	}
	if (r < 0) {
		report_dir_close(opened);
		return r;
	}
	*ret_dir = opened;
	return 0;
}

static bool is_report(const char *name)
{
	for (size_t i = 0; report_writers[i]; i++)
		if (fnmatch(report_writers[i]->file, name, FNM_PERIOD | FNM_EXTMATCH) == 0)
			return true;
	return false;
}

void report_dir_clear(struct report_dir *dir)
{
	int fd = dir ? openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!listing) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(listing)))
		if (is_report(entry->d_name))
			unlinkat(dir->fd, entry->d_name, 0);
	closedir(listing);
}

struct report_dir *report_dir_close(struct report_dir *dir)
{
	if (!dir)
		return NULL;
	if (dir->fd >= 0)
		close(dir->fd);
	free(dir);
	return NULL;
}
