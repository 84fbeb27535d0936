/* SPDX-License-Identifier: MIT
 *
 * Battery-backed memory: what was stored is there again after the process that stored it was
 * killed, and no two targets have it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/drive/nvram.h"

enum { BYTES = 64 * 1024 };

static char place[64];

static int setup(void **state)
{
	(void)state;
	snprintf(place, sizeof place, "/tmp/sanlab-nvram.XXXXXX");
	return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[96];

	(void)state;
	snprintf(path, sizeof path, "%s/m1.nvram", place);
	(void)unlink(path);
	return rmdir(place);
}

static void survives_a_kill(void **state)
{
	struct nvram nvram;
	struct err err = {0};
	int status;

	(void)state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (nvram_open(place, "m1", BYTES, &nvram, &err) || nvram.found)
			_exit(1);
		memset(nvram.memory, 0x5a, BYTES);
		raise(SIGKILL);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(nvram_open(place, "m1", BYTES, &nvram, &err), 0);
	assert_true(nvram.found);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(nvram.memory[i], 0x5a);
	assert_int_equal(nvram_sync(&nvram, 5000, 1), 0);
	nvram_close(&nvram);
}

static void grows_and_keeps(void **state)
{
	struct nvram nvram;
	struct err err = {0};

	(void)state;
	assert_int_equal(nvram_open(place, "m1", BYTES, &nvram, &err), 0);
	nvram.memory[BYTES - 1] = 7;
	nvram_close(&nvram);
	assert_int_equal(nvram_open(place, "m1", 2 * BYTES, &nvram, &err), 0);
	assert_int_equal(nvram.bytes, 2 * BYTES);
	assert_int_equal(nvram.memory[BYTES - 1], 7);
	assert_int_equal(nvram.memory[2 * BYTES - 1], 0);
	nvram_close(&nvram);
	assert_int_equal(nvram_open(place, "m1", 4096, &nvram, &err), 0);
	assert_int_equal(nvram.bytes, 2 * BYTES);
	nvram_close(&nvram);
}

static void has_one_owner(void **state)
{
	struct nvram nvram, second;
	struct err err = {0};

	(void)state;
	assert_int_equal(nvram_open(place, "m1", BYTES, &nvram, &err), 0);
	assert_int_equal(nvram_open(place, "m1", BYTES, &second, &err), -EBUSY);
	assert_non_null(strstr(err.what, "in use by another target"));
	nvram_close(&nvram);
}

static void is_anonymous_without_a_place(void **state)
{
	struct nvram nvram;
	struct err err = {0};

	(void)state;
	assert_int_equal(nvram_open(NULL, "m1", BYTES, &nvram, &err), 0);
	assert_false(nvram.found);
	nvram.memory[0] = 1;
	assert_int_equal(nvram_sync(&nvram, 0, BYTES), 0);
	nvram_close(&nvram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(survives_a_kill, setup, teardown),
	    cmocka_unit_test_setup_teardown(grows_and_keeps, setup, teardown),
	    cmocka_unit_test_setup_teardown(has_one_owner, setup, teardown),
	    cmocka_unit_test(is_anonymous_without_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
