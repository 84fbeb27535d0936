/* SPDX-License-Identifier: MIT
 *
 * Directories of file stores: copied, removed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/array/store_files.h"

const char *path_of(const char *dir, const char *name)
{
	static char paths[4][200];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", dir, name);
	return path;
}

void copy_file(const char *from, const char *to)
{
	struct stat status;
	int in = open(from, O_RDONLY), out = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(in >= 0 && out >= 0);
	assert_int_equal(fstat(in, &status), 0);
	assert_int_equal(ftruncate(out, status.st_size), 0);
	/* Sparse, as the files are. */
	for (off_t at = 0; (at = lseek(in, at, SEEK_DATA)) >= 0;) {
		off_t end = lseek(in, at, SEEK_HOLE);
		assert_int_equal(lseek(out, at, SEEK_SET), at);
		while (at < end)
			assert_true(sendfile(out, in, &at, (size_t)(end - at)) > 0);
	}
	close(in);
	close(out);
}

void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

void copy_dir(const char *from, const char *to)
{
	remove_dir(to);
	assert_int_equal(mkdir(to, 0700), 0);
	DIR *dir = opendir(from);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			copy_file(path_of(from, entry->d_name), path_of(to, entry->d_name));
	closedir(dir);
}
