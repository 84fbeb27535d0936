/* SPDX-License-Identifier: MIT
 *
 * The battery-backed memory of a member's cache on a file store: it must be the member's, of the
 * pool's last start, and there when it may hold what the drives have not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/cache.h"
#include "target/array/volume.h"
#include "target/drive/vfs.h"
#include "tests/unit/array/lab.h"

#define P POOL_PAGE_BYTES

static struct lab lab;
static char root[64], places[2][80];
/* The memory in use, copies of it, and that of another pool. */
static char memory[120], clean[120], dirty[120], foreign[120];

static void copy_memory(const char *from, const char *to)
{
	struct stat status;
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(in >= 0 && out >= 0);
	assert_int_equal(fstat(in, &status), 0);
	for (off_t at = 0; at < status.st_size;)
		assert_true(sendfile(out, in, &at, (size_t)(status.st_size - at)) > 0);
	close(in);
	close(out);
}

static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static void describe(void)
{
	lab_init(&lab);
	struct member_config *member = lab_member(&lab, "m1", "raid10", 4, 64 * MIB);
	member->store_kind = "file";
	member->store_place = places[0];
	lab_volume(&lab, "a", 8 * P, true);
}

static int setup(void **state)
{
	lab_sync_nothing();
	snprintf(root, sizeof root, "%s/sanlab-cache-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(root))
		return -1;
	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		snprintf(places[i], sizeof places[i], "%s/s%u", root, i);
	snprintf(memory, sizeof memory, "%s/m1-cache.nvram", places[0]);
	snprintf(foreign, sizeof foreign, "%s/m1-cache.nvram", places[1]);
	snprintf(clean, sizeof clean, "%s/clean", root);
	snprintf(dirty, sizeof dirty, "%s/dirty", root);
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int teardown(void **state)
{
	vfs = &vfs_system;
	(void)unlink(clean);
	(void)unlink(dirty);
	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		remove_dir(places[i]);
	return rmdir(root);
}

static void describe_cached(void)
{
	describe();
	lab.members[0].cache.size_bytes = MIB;
	lab.members[0].cache.mode = CACHE_WRITE_BACK;
}

static void killed_after_writes(uint8_t value)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		lab_opens(&lab);
		lab_write_pages(&lab, value);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* With a cache configured and without one. */
static void memory_refused(int rc, const char *what)
{
	lab_refuses(&lab, rc, what);
	describe();
	lab_refuses(&lab, rc, what);
	describe_cached();
}

static void lost_old_or_foreign(void **state)
{
	describe_cached();
	lab.members[0].store_place = places[1];
	lab_opens(&lab); /* another pool */
	lab_close(&lab);

	describe_cached();
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	copy_memory(memory, clean);
	killed_after_writes(2);
	copy_memory(memory, dirty);
	assert_int_equal(unlink(memory), 0);
	memory_refused(-ENOENT, "is lost");
	assert_int_equal(access(memory, F_OK), -1);
	copy_memory(clean, memory);
	memory_refused(-ESTALE, "battery-backed memory of start");
	copy_memory(foreign, memory);
	memory_refused(-EMEDIUMTYPE, "battery-backed memory of another member");
	assert_int_equal(truncate(memory, 0), 0);
	assert_int_equal(truncate(memory, 2 * MIB), 0);
	memory_refused(-ENOENT, "is lost");
	copy_memory(dirty, memory);
	lab_opens(&lab);
	lab_expect_pages(&lab, 2);
	lab_write_pages(&lab, 3);
	lab_close(&lab);

	copy_memory(dirty, memory); /* destaged long ago */
	memory_refused(-ESTALE, "battery-backed memory of start");
}

static void lost_when_clean(void **state)
{
	describe_cached();
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	assert_int_equal(unlink(memory), 0);
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
}

static void without_a_cache_in_between(void **state)
{
	describe_cached();
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	describe();
	for (unsigned i = 0; i < 3; i++) {
		lab_opens(&lab);
		lab_expect_pages(&lab, 1);
		lab_close(&lab);
	}
	describe_cached(); /* it has taken part in those starts */
	killed_after_writes(2);
	describe(); /* what it holds reaches the drives */
	lab_opens(&lab);
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
	assert_int_equal(unlink(memory), 0);
	lab_opens(&lab);
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
}

static void given_up(void **state)
{
	describe_cached();
	killed_after_writes(1);
	assert_int_equal(truncate(memory, 0), 0);
	lab_opens(&lab);
	lab_close(&lab);
	lab_opens(&lab);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(lost_old_or_foreign, setup, teardown),
	    cmocka_unit_test_setup_teardown(lost_when_clean, setup, teardown),
	    cmocka_unit_test_setup_teardown(without_a_cache_in_between, setup, teardown),
	    cmocka_unit_test_setup_teardown(given_up, setup, teardown),
	};
	return cmocka_run_group_tests_name("cache_claim", tests, NULL, NULL);
}
