/* SPDX-License-Identifier: MIT
 *
 * events.jsonl: whole lines as soon as they happen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/report/files.h"
#include "tests/unit/report/markup.h"

static void each_line_parses(void **state)
{
	char *dir = scratch_make(), *text, *save, *line;
	struct event_log *log;
	struct err err = {0};
	json_int_t seq = 0;

	assert_int_equal(event_log_open(dir, &log, &err), 0);
	event_log_emit(log, "start", 0, json_pack("{s:s}", "lab", "q\n\"<>"));
	event_log_emit(log, "interval", 1000, json_pack("{s:f}", "share", 0.1));
	event_log_emit(log, "end", 2000, NULL);
	text = file_read(dir, "events.jsonl");
	assert_string_equal(text, "{\"seq\":0,\"t\":\"start\",\"at_ns\":0,\"lab\":\"q\\n\\\"<>\"}\n"
				  "{\"seq\":1,\"t\":\"interval\",\"at_ns\":1000,\"share\":0.1}\n"
				  "{\"seq\":2,\"t\":\"end\",\"at_ns\":2000}\n");
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		assert_int_equal(json_integer_value(json_object_get(event, "seq")), seq++);
		json_decref(event);
	}
	assert_int_equal(seq, 3);
	assert_int_equal(event_log_status(log), 0);
	free(text);
	event_log_close(log);
	scratch_remove(dir);
}

static void visible_at_once(void **state)
{
	char *dir = scratch_make();
	struct event_log *log;
	struct err err = {0};

	assert_int_equal(event_log_open(dir, &log, &err), 0);
	for (unsigned i = 0; i < 50; i++) {
		char *text;

		event_log_emit(log, "interval", i, json_pack("{s:i}", "n", (int)i));
		text = file_read(dir, "events.jsonl");
		assert_int_equal(count_of(text, "\n"), i + 1);
		free(text);
	}
	event_log_close(log);
	scratch_remove(dir);
}

static void own_members_win(void **state)
{
	char *dir = scratch_make(), *text;
	struct event_log *log;
	struct err err = {0};

	assert_int_equal(event_log_open(dir, &log, &err), 0);
	event_log_emit(log, "fault", 5, json_pack("{s:s, s:i, s:i}", "t", "x", "seq", 9, "k", 1));
	text = file_read(dir, "events.jsonl");
	assert_string_equal(text, "{\"seq\":0,\"t\":\"fault\",\"at_ns\":5,\"k\":1}\n");
	free(text);
	event_log_close(log);
	scratch_remove(dir);
}

static void nowhere_is_fine(void **state)
{
	struct event_log *log;
	struct err err = {0};

	assert_int_equal(event_log_open(NULL, &log, &err), 0);
	event_log_emit(log, "start", 0, json_object());
	assert_int_equal(event_log_status(log), 0);
	assert_null(event_log_close(log));
	assert_null(event_log_close(NULL));
}

static void directory_is_made_or_refused(void **state)
{
	char *scratch = scratch_make(), *dir;
	struct event_log *log = NULL;
	struct err err = {0};

	assert_true(asprintf(&dir, "%s/a/b", scratch) > 0);
	assert_int_equal(event_log_open(dir, &log, &err), 0);
	assert_true(file_exists(dir, "events.jsonl"));
	event_log_close(log);
	free(dir);

	file_write(scratch, "taken", "");
	assert_true(asprintf(&dir, "%s/taken", scratch) > 0);
	log = NULL;
	assert_int_equal(event_log_open(dir, &log, &err), -ENOTDIR);
	assert_null(log);
	assert_true(err.what[0] != '\0' && err.where[0] != '\0');
	free(dir);
	scratch_remove(scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_line_parses),
	    cmocka_unit_test(visible_at_once),
	    cmocka_unit_test(own_members_win),
	    cmocka_unit_test(nowhere_is_fine),
	    cmocka_unit_test(directory_is_made_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
