/* SPDX-License-Identifier: MIT
 *
 * The target process: ready, not ready, ended, stopped.  Small shell scripts play the target.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/bytes.h"
#include "base/loop.h"
#include "harness/run/spawn.h"

struct script {
	char dir[64], file[80];
};

static void write_script(struct script *script, const char *body)
{
	FILE *to;

	snprintf(script->dir, sizeof script->dir, "/tmp/sanlab-test-XXXXXX");
	assert_non_null(mkdtemp(script->dir));
	snprintf(script->file, sizeof script->file, "%s/target", script->dir);
	to = fopen(script->file, "we");
	assert_non_null(to);
	fprintf(to, "#!/bin/sh\n%s\n", body);
	fclose(to);
	assert_int_equal(chmod(script->file, 0700), 0);
}

static void remove_script(struct script *script)
{
	char args[100];

	snprintf(args, sizeof args, "%s/args", script->dir);
	unlink(args);
	unlink(script->file);
	assert_int_equal(rmdir(script->dir), 0);
}

static void one_that_gets_ready_is_stopped(void **state)
{
	static const char *const sets[] = {"a.b=1", "c=2"};
	struct target_process *process;
	struct script script;
	struct err err = {0};
	char line[300] = "", path[100];
	json_t *usage = NULL;
	FILE *args;
	int code;

	/* It ends when its standard input does: as the real one. */
	write_script(&script, "echo \"$@\" >\"$(dirname \"$0\")/args\"\n"
			      "echo ready: 127.0.0.1:3260\nexec cat >/dev/null");
	if (target_spawn(script.file, "lab.yaml", sets, 2, NULL, &process, &code, &err) < 0)
		fail_msg("%s", err.what);
	assert_int_equal(code, 0);
	process = target_stop_process(process, &usage);
	assert_null(process);
	assert_true(json_is_integer(json_object_get(usage, "user_cpu_ns")));
	json_decref(usage);
	snprintf(path, sizeof path, "%s/args", script.dir);
	args = fopen(path, "re");
	assert_non_null(args);
	assert_non_null(fgets(line, sizeof line, args));
	fclose(args);
	assert_non_null(strstr(line, "target lab.yaml --control /"));
	assert_non_null(strstr(line, "--set a.b=1 --set c=2"));
	remove_script(&script);
}

static void one_that_fails_keeps_its_exit_code(void **state)
{
	static const struct {
		const char *body;
		int result, code;
	} cases[] = {
	    {"exit 3", -ECHILD, 3},
	    {"exit 2", -ECHILD, 2},
	    {"exit 0", -ECHILD, EXIT_INTERNAL},
	    {"kill -9 $$", -ECHILD, EXIT_INTERNAL},
	    {"echo something else; exec cat >/dev/null", -EPROTO, EXIT_INTERNAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct target_process *process = NULL;
		struct script script;
		struct err err = {0};
		int code = -1, r;

		write_script(&script, cases[i].body);
		r = target_spawn(script.file, "lab.yaml", NULL, 0, NULL, &process, &code, &err);
		assert_int_equal(r, cases[i].result);
		assert_int_equal(code, cases[i].code);
		assert_null(process);
		assert_true(err.what[0] != '\0');
		remove_script(&script);
	}
}

static void one_that_cannot_be_started_is_named(void **state)
{
	struct target_process *process;
	struct err err = {0};
	int code;

	assert_int_equal(
	    target_spawn("/nonexistent/sanlab", "lab.yaml", NULL, 0, NULL, &process, &code, &err),
	    -ENOENT);
	assert_int_equal(code, EXIT_ENVIRONMENT);
}

struct watcher {
	struct loop *loop;
	bool gone;
};

static void gone(void *arg)
{
	struct watcher *watcher = arg;

	watcher->gone = true;
	loop_stop(watcher->loop);
}

static void one_that_dies_is_noticed(void **state)
{
	struct target_process *process;
	struct watcher watcher = {0};
	struct script script;
	struct err err = {0};
	char end[40];
	int code;

	write_script(&script, "echo ready; kill -9 $$");
	assert_int_equal(
	    target_spawn(script.file, "lab.yaml", NULL, 0, NULL, &process, &code, &err), 0);
	assert_int_equal(loop_new_real(&watcher.loop), 0);
	if (target_watch(process, watcher.loop, gone, &watcher) == 0) {
		assert_int_equal(
		    loop_run_until(watcher.loop, loop_now_ns(watcher.loop) + 20 * NS_PER_S), 0);
		assert_true(watcher.gone);
		target_describe_end(process, end, sizeof end);
		assert_string_equal(end, "signal 9");
	}
	target_stop_process(process, NULL);
	loop_free(watcher.loop);
	remove_script(&script);
}

struct second_life {
	struct loop *loop;
	int status;
};

static void ready_again(void *arg, int status)
{
	struct second_life *life = arg;

	life->status = status;
	loop_stop(life->loop);
}

/* Killed and started again: with the same words, and nobody says that it has gone. */
static void one_that_is_killed_lives_again(void **state)
{
	struct second_life life = {.status = 1};
	struct watcher watcher = {0};
	struct target_process *process;
	struct script script;
	struct err err = {0};
	json_t *usage = NULL;
	int code;

	write_script(&script, "echo \"$@\" >>\"$(dirname \"$0\")/args\"\n"
			      "[ $(wc -l <\"$(dirname \"$0\")/args\") -lt 3 ] || exit 3\n"
			      "printf rea; printf 'dy: 1\\n'\nexec cat >/dev/null");
	assert_int_equal(
	    target_spawn(script.file, "lab.yaml", NULL, 0, NULL, &process, &code, &err), 0);
	assert_int_equal(loop_new_real(&life.loop), 0);
	watcher.loop = life.loop;
	if (target_watch(process, life.loop, gone, &watcher) == 0) {
		uint64_t until_ns = loop_now_ns(life.loop) + 20 * NS_PER_S;

		assert_int_equal(target_restart(process, ready_again, &life, &err), -EALREADY);
		target_kill(process);
		assert_int_equal(target_restart(process, ready_again, &life, &err), 0);
		assert_int_equal(loop_run_until(life.loop, until_ns), 0);
		assert_int_equal(life.status, 0);
		assert_false(watcher.gone);
		/* The third one ends before it is ready: both are told. */
		target_kill(process);
		life.status = 1;
		assert_int_equal(target_restart(process, ready_again, &life, &err), 0);
		while (life.status == 1 || !watcher.gone)
			assert_int_equal(loop_run_until(life.loop, until_ns), 0);
		assert_int_equal(life.status, -ECHILD);
	}
	target_stop_process(process, &usage);
	assert_true(json_is_integer(json_object_get(usage, "user_cpu_ns")));
	json_decref(usage);
	loop_free(life.loop);
	remove_script(&script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_that_gets_ready_is_stopped),
	    cmocka_unit_test(one_that_fails_keeps_its_exit_code),
	    cmocka_unit_test(one_that_cannot_be_started_is_named),
	    cmocka_unit_test(one_that_dies_is_noticed),
	    cmocka_unit_test(one_that_is_killed_lives_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
