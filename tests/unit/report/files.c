/* SPDX-License-Identifier: MIT
 *
 * Scratch directories and whole files, for the report tests.
 */
#include "tests/unit/report/files.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *join(const char *dir, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

char *scratch_make(void)
{
	const char *base = getenv("TMPDIR");
	char *dir = join(base ? base : "/tmp", "sanlab-report-XXXXXX");

	assert_non_null(mkdtemp(dir));
	return dir;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	return remove(path);
}

void scratch_remove(char *dir)
{
	assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(dir);
}

char *file_read(const char *dir, const char *name)
{
	char *path = join(dir, name), *text;
	FILE *from = fopen(path, "re");
	long size;

	if (!from)
		fail_msg("cannot read %s", path);
	assert_int_equal(fseek(from, 0, SEEK_END), 0);
	size = ftell(from);
	assert_true(size >= 0);
	rewind(from);
	text = malloc((size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, from), size);
	text[size] = '\0';
	fclose(from);
	free(path);
	return text;
}

bool file_exists(const char *dir, const char *name)
{
	char *path = join(dir, name);
	bool exists = access(path, F_OK) == 0;

	free(path);
	return exists;
}

void file_write(const char *dir, const char *name, const char *text)
{
	char *path = join(dir, name);
	FILE *to = fopen(path, "we");

	if (!to)
		fail_msg("cannot write %s", path);
	assert_true(fputs(text, to) >= 0);
	assert_int_equal(fclose(to), 0);
	free(path);
}

static unsigned part_called(const struct report_writer *writer, const struct record *record,
			    const char *wanted)
{
	char name[REPORT_NAME_BYTES];
	unsigned index = 0;

	for (; writer->name(record, index, name) == 0; index++) {
		if (!wanted || strcmp(name, wanted) == 0)
			return index;
	}
	fail_msg("%s: no such file", wanted ? wanted : writer->file);
	return 0;
}

char *written_by(const struct report_writer *writer, const struct record *record, const char *name)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	if (writer->write_part)
		assert_int_equal(writer->write_part(record, part_called(writer, record, name), to),
				 0);
	else
		assert_int_equal(writer->write(record, to), 0);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(strlen(text), size);
	return text;
}
