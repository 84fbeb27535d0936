/* SPDX-License-Identifier: MIT
 *
 * Copies of databases on two servers in virtual time: logs are shipped and replayed, copies become
 * active and are seeded, all under load.  In the end every page of a copy must be what it is on the
 * active database's volume, its dbtime included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "harness/workload/ese/ese_dag.h"
#include "harness/workload/ese/ese_db.h"
#include "harness/workload/ese/ese_workload.h"
#include "tests/unit/workload/ese/crash_device.h"

enum { VOLUMES = 4 };
#define VOLUME_BYTES (96 * MIB)

static const char *const hosts[VOLUMES] = {"mbx1", "mbx1", "mbx2", "mbx2"};
static const char *const volumes[VOLUMES] = {"db1", "db2b", "db2", "db1b"};

struct dag_test {
	struct loop *loop;
	struct crash_device devices[VOLUMES];
	struct workload_device list[VOLUMES];
	struct cfg *cfg;
	struct ese_config config;
	struct workload *workload;
	int status; /* of the last callback; 1: none */
	uint64_t mismatches;
};

static void called_back(void *arg, int status)
{
	struct dag_test *test = arg;

	test->status = status;
	loop_stop(test->loop);
}

static void mismatch(void *arg, const struct mismatch *found)
{
	struct dag_test *test = arg;

	test->mismatches++;
}

static void failed(void *arg, const char *why)
{
	print_error("%s\n", why);
}

static void run_for(struct dag_test *test, uint64_t ns)
{
	uint64_t until = loop_now_ns(test->loop) + ns;

	while (loop_now_ns(test->loop) < until)
		loop_run_until(test->loop, until);
}

static void wait_back(struct dag_test *test)
{
	for (unsigned i = 0; i < 1000 && test->status == 1; i++)
		loop_run_until(test->loop, loop_now_ns(test->loop) + NS_PER_S);
	assert_int_equal(test->status, 0);
}

static int setup(void **state)
{
	struct dag_test *test = calloc(1, sizeof *test);

	assert_int_equal(loop_new_virtual(0, &test->loop), 0);
	*state = test;
	return 0;
}

static void open_lab(struct dag_test *test, const char *keys, uint64_t seed)
{
	struct workload_env env = {
	    .loop = test->loop,
	    .seed = seed,
	    .devices = test->list,
	    .device_count = VOLUMES,
	    .mismatch = mismatch,
	    .failed = failed,
	    .arg = test,
	    .window_ns = 600 * NS_PER_S,
	};
	struct err err = {0};
	char text[1000];

	snprintf(text, sizeof text,
		 "{engine: ese, mailboxes: 400, loop: open, initial-size: 24MiB, database-size: "
		 "64MiB, log-files: 12, checkpoint-depth: 2MiB, cache-min: 4MiB, cache-max: 4MiB, "
		 "placement: [{database: db1b, copy-of: db1}, {database: db2b, copy-of: db2}], %s}",
		 keys);
	assert_int_equal(ese_config_parse(text, &test->cfg, &test->config), 0);
	for (unsigned i = 0; i < VOLUMES; i++) {
		crash_device_init(&test->devices[i], test->loop, volumes[i], VOLUME_BYTES, i);
		test->list[i] = test->devices[i].device;
		test->list[i].host = hosts[i];
	}
	assert_int_equal(ese_workload_ops.open(&env, &test->config, &test->workload, &err), 0);
	test->status = 1;
	ese_workload_ops.prepare(test->workload, called_back, test);
	wait_back(test);
	ese_workload_ops.start(test->workload);
}

static void stop(struct dag_test *test)
{
	test->status = 1;
	ese_workload_ops.stop(test->workload, called_back, test);
	wait_back(test);
}

static int teardown(void **state)
{
	struct dag_test *test = *state;

	if (test->workload)
		ese_workload_ops.free(test->workload);
	for (unsigned i = 0; i < VOLUMES; i++)
		crash_device_fini(&test->devices[i]);
	cfg_free(test->cfg);
	loop_free(test->loop);
	free(test);
	return 0;
}

/* ---- what came of it ---- */

static struct ese_workload *ese_of(struct dag_test *test)
{
	return container_of(test->workload, struct ese_workload, base);
}

static void take_page(const struct ese_image_rules *rules, const uint8_t *memory, uint32_t page,
		      struct ese_image *image)
{
	static uint8_t copy[ESE_PAGE_BYTES] __attribute__((aligned(8)));
	static const uint8_t zero[ESE_PAGE_BYTES];

	memcpy(copy, memory + (uint64_t)page * ESE_PAGE_BYTES, sizeof copy);
	if (memcmp(copy, zero, sizeof copy) == 0)
		assert_int_equal(ese_image_initial(rules, page, image), 0);
	else
		assert_int_equal(ese_page_decode(copy, image), 0);
}

/* Every page in use of one volume is what it is on the other. */
static void assert_same(struct dag_test *test, unsigned server, unsigned index, unsigned a,
			unsigned b)
{
	struct ese_db *db = ese_server_database(ese_of(test)->servers[server], index);
	const struct ese_image_rules *rules = ese_db_rules(db);
	struct ese_image_pool *pool = ese_image_pool_new();
	struct ese_image one, other;
	uint64_t changed = 0;

	ese_image_init(&one, pool, 0);
	ese_image_init(&other, pool, 0);
	for (uint32_t page = ESE_PAGE_FIRST; page < ese_db_used_pages(db); page++) {
		take_page(rules, test->devices[a].memory, page, &one);
		take_page(rules, test->devices[b].memory, page, &other);
		one.page = other.page = page;
		if (!ese_image_equal(&one, &other))
			fail_msg("page %u: dbtime %llu on %s, %llu on %s", page,
				 (unsigned long long)one.dbtime, volumes[a],
				 (unsigned long long)other.dbtime, volumes[b]);
		changed += one.dbtime != 0;
	}
	assert_true(changed > 200);
	ese_image_pool_free(pool);
}

/* The copy of database NUMBER (1, 2) as the report has it. */
static json_t *copy_of(json_t *copies, unsigned number)
{
	for (size_t i = 0; i < json_array_size(copies); i++) {
		json_t *copy = json_array_get(copies, i);
		const char *active = json_string_value(json_object_get(copy, "active"));

		if (active[2] == (char)('0' + number))
			return copy;
	}
	fail_msg("no copy of database %u", number);
	return NULL;
}

static json_int_t of_copy(struct dag_test *test, unsigned number, const char *key)
{
	json_t *copies = ese_dag_describe(ese_of(test)->dag);
	json_int_t value = json_integer_value(json_object_get(copy_of(copies, number), key));

	json_decref(copies);
	return value;
}

static void assert_state(struct dag_test *test, unsigned number, const char *state)
{
	json_t *copies = ese_dag_describe(ese_of(test)->dag);

	assert_string_equal(json_string_value(json_object_get(copy_of(copies, number), "state")),
			    state);
	json_decref(copies);
}

static int activate(struct dag_test *test, const char *database, bool failover, unsigned lost_max)
{
	const struct workload_fault fault = {
	    .kind = WORKLOAD_COPY_ACTIVATE,
	    .volume = database,
	    .failover = failover,
	    .lost_files_max = lost_max,
	};

	return ese_workload_ops.fault(test->workload, &fault, NULL);
}

static int reseed(struct dag_test *test, const char *database, const char *to, uint64_t bytes_per_s)
{
	const struct workload_fault fault = {
	    .kind = WORKLOAD_COPY_RESEED,
	    .volume = database,
	    .to = to,
	    .bytes_per_s = bytes_per_s,
	};

	return ese_workload_ops.fault(test->workload, &fault, NULL);
}

static void settle(struct dag_test *test)
{
	for (unsigned i = 0; i < 600 && ese_dag_is_moving(ese_of(test)->dag); i++)
		run_for(test, NS_PER_S);
	assert_false(ese_dag_is_moving(ese_of(test)->dag));
}

static uint64_t transactions(struct dag_test *test, unsigned server)
{
	struct ese_server_counts counts;

	ese_server_counts(ese_of(test)->servers[server], &counts);
	return counts.transactions;
}

/* The check of all pages attaches them once more; what was lost or made anew is not asked for. */
static void assert_read_back(struct dag_test *test)
{
	const struct workload_check *check = &test->workload->check;

	test->status = 1;
	ese_workload_ops.verify(test->workload, called_back, test);
	wait_back(test);
	assert_true(check->pages_written > 0);
	assert_int_equal(check->pages_read_back, check->pages_written);
	assert_int_equal(check->pages_not_readable, 0);
	assert_int_equal(test->mismatches, 0);
}

static void assert_both_same(struct dag_test *test)
{
	stop(test);
	assert_int_equal(test->mismatches, 0);
	assert_state(test, 1, "idle");
	assert_state(test, 2, "idle");
	assert_same(test, 0, 0, 0, 3);
	assert_same(test, 1, 0, 2, 1);
	assert_read_back(test);
}

static void copies_follow_by_file(void **state)
{
	open_lab(*state, "replication: file", 1);
	run_for(*state, 200 * NS_PER_S);
	assert_state(*state, 1, "healthy");
	assert_true(of_copy(*state, 1, "updates_replayed") > 100);
	assert_both_same(*state);
}

static void copies_follow_by_block(void **state)
{
	open_lab(*state, "replication: block", 2);
	run_for(*state, 100 * NS_PER_S);
	assert_true(of_copy(*state, 2, "updates_replayed") > 100);
	assert_both_same(*state);
}

static void switchover_loses_nothing(void **state)
{
	struct dag_test *test = *state;
	uint64_t before;

	open_lab(test, "replication: file", 3);
	run_for(test, 60 * NS_PER_S);
	assert_int_equal(activate(test, "db1", false, 0), 0);
	assert_int_equal(activate(test, "db1", false, 0), -EBUSY);
	settle(test);
	assert_int_equal(of_copy(test, 1, "activations"), 1);
	assert_int_equal(of_copy(test, 1, "lost_log_bytes"), 0);
	assert_int_equal(activate(test, "db1", false, 0), -ENOENT); /* it is no active one now */
	assert_int_equal(ese_server_active_count(ese_of(test)->servers[0]), 0);
	assert_int_equal(ese_server_active_count(ese_of(test)->servers[1]), 2);
	before = transactions(test, 0);
	run_for(test, 60 * NS_PER_S);
	assert_int_equal(transactions(test, 0), before);
	/* And back. */
	assert_int_equal(activate(test, "db1b", false, 0), 0);
	settle(test);
	run_for(test, 60 * NS_PER_S);
	assert_true(transactions(test, 0) > before + 100);
	assert_both_same(test);
}

/* One of two servers has both databases for the second half of the time. */
static void targets_follow_the_databases(void **state)
{
	struct dag_test *test = *state;
	struct ese_server_counts begun[2], ended[2];
	double target[2];

	open_lab(test, "replication: file", 8);
	for (unsigned i = 0; i < 2; i++)
		ese_server_counts(ese_of(test)->servers[i], &begun[i]);
	run_for(test, 60 * NS_PER_S);
	assert_int_equal(activate(test, "db1", false, 0), 0);
	settle(test);
	run_for(test, begun[0].at_ns + 120 * NS_PER_S - loop_now_ns(test->loop));
	for (unsigned i = 0; i < 2; i++) {
		ese_server_counts(ese_of(test)->servers[i], &ended[i]);
		target[i] =
		    ese_server_mean_target_iops(ese_of(test)->servers[i], &begun[i], &ended[i]) /
		    ese_config_target_iops(&test->config);
	}
	assert_true(target[0] > 0.24 && target[0] < 0.27);
	assert_true(target[1] > 0.68 && target[1] < 0.76);
	stop(test);
}

static void failover_loses_what_was_not_shipped(void **state)
{
	struct dag_test *test = *state;

	open_lab(test, "replication: file", 4);
	run_for(test, 100 * NS_PER_S);
	assert_int_equal(activate(test, "db1", true, 6), 0);
	settle(test);
	assert_int_equal(of_copy(test, 1, "activations"), 1);
	assert_true(of_copy(test, 1, "lost_log_bytes") > 0);
	assert_int_equal(of_copy(test, 1, "lost_log_files"), 1);
	assert_state(test, 1, "failed");
	run_for(test, 30 * NS_PER_S);
	/* What was active becomes a copy of what is. */
	assert_int_equal(reseed(test, "db1b", NULL, 4 * MIB), 0);
	run_for(test, NS_PER_S);
	assert_state(test, 1, "seeding");
	settle(test);
	assert_state(test, 1, "healthy");
	assert_true(of_copy(test, 1, "seed_ns") > (json_int_t)(5 * NS_PER_S));
	run_for(test, 60 * NS_PER_S);
	assert_both_same(test);
}

static void lossless_failover_is_refused(void **state)
{
	struct dag_test *test = *state;

	open_lab(test, "replication: file", 5);
	run_for(test, 100 * NS_PER_S);
	assert_int_equal(activate(test, "db2", true, 0), 0);
	settle(test);
	assert_int_equal(of_copy(test, 2, "activations"), 0);
	assert_int_equal(of_copy(test, 2, "activations_refused"), 1);
	assert_int_equal(ese_server_active_count(ese_of(test)->servers[1]), 0);
	run_for(test, 10 * NS_PER_S);
	stop(test);
	assert_same(test, 0, 0, 0, 3);
	assert_read_back(test);
}

static void reseed_under_load(void **state)
{
	struct dag_test *test = *state;

	open_lab(test, "replication: block, iops-per-mailbox: 1", 6);
	for (unsigned i = 0; i < 5; i++) {
		run_for(test, 7 * NS_PER_S);
		assert_int_equal(reseed(test, "db1", "db1b", i ? 0 : 8 * MIB), 0);
		settle(test);
		assert_state(test, 1, "healthy");
		assert_int_equal(of_copy(test, 1, "reseeds"), i + 1);
	}
	run_for(test, 20 * NS_PER_S);
	assert_both_same(test);
}

/* The end comes while things are on their way. */
static void stops_at_any_time(void **state)
{
	struct dag_test *test = *state;

	open_lab(test, "replication: file", 7);
	run_for(test, 60 * NS_PER_S);
	assert_int_equal(reseed(test, "db1", NULL, MIB), 0);
	assert_int_equal(activate(test, "db2", false, 0), 0);
	run_for(test, 3 * NS_PER_S);
	stop(test);
	assert_state(test, 1, "failed");
	assert_same(test, 1, 0, 2, 1);
	assert_int_equal(test->mismatches, 0);
	test->status = 1;
	ese_workload_ops.verify(test->workload, called_back, test);
	wait_back(test);
	assert_int_equal(test->mismatches, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(copies_follow_by_file, setup, teardown),
	    cmocka_unit_test_setup_teardown(copies_follow_by_block, setup, teardown),
	    cmocka_unit_test_setup_teardown(switchover_loses_nothing, setup, teardown),
	    cmocka_unit_test_setup_teardown(targets_follow_the_databases, setup, teardown),
	    cmocka_unit_test_setup_teardown(failover_loses_what_was_not_shipped, setup, teardown),
	    cmocka_unit_test_setup_teardown(lossless_failover_is_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(reseed_under_load, setup, teardown),
	    cmocka_unit_test_setup_teardown(stops_at_any_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
