/* SPDX-License-Identifier: MIT
 *
 * A main() for fuzz targets without a fuzzer: runs each file of the directories (or files) named
 * on the command line, and speaks TAP.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned files, failures;

static void replay_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *data = malloc(INPUT_MAX_BYTES);
	size_t size;

	files++;
	if (!file || !data) {
		printf("not ok %u - %s: %s\n", files, path, strerror(errno));
		failures++;
	} else {
		size = fread(data, 1, INPUT_MAX_BYTES, file);
		/* Said before: a crash must not hide which it was. */
		fprintf(stderr, "# %s\n", path);
		/* Exactly as long as it is, so that a sanitizer sees a read beyond its end. */
		data = size > 0 ? realloc(data, size) : data;
		LLVMFuzzerTestOneInput(data, size);
		printf("ok %u - %s\n", files, path);
	}
	free(data);
	if (file)
		fclose(file);
}

static void replay_directory(const char *path)
{
	struct dirent **entry;
	int count = scandir(path, &entry, NULL, alphasort);

	if (count < 0) {
		printf("not ok %u - %s: %s\n", ++files, path, strerror(errno));
		failures++;
		return;
	}
	for (int i = 0; i < count; i++) {
		char name[PATH_MAX];

		if (entry[i]->d_name[0] != '.') {
			snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
			replay_file(name);
		}
		free(entry[i]);
	}
	free(entry);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			replay_directory(argv[i]);
		else
			replay_file(argv[i]);
	}
	printf("1..%u\n", files);
	return failures > 0;
}
