/* SPDX-License-Identifier: MIT
 *
 * What the balancers decide, by tables: capacity, drains, latency verdicts, swaps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "target/array/balance_plan.h"

enum { MEMBERS = 4, VOLUMES = 3, TRANSFERS = 64 };

struct capacity_case {
	const char *name;
	uint32_t capacity[MEMBERS]; /* in pages; 0: there is no such member */
	char kind[MEMBERS]; /* 0 as usual, 'd' drained, 'o' offline, 'v' volatile (memory) */
	uint32_t before[VOLUMES][MEMBERS];
	uint32_t after[VOLUMES][MEMBERS];
	bool only_leaving;
};

static const struct capacity_case capacity_cases[] = {
    {"nothing to do", {100, 100}, {0}, {{10, 10}}, {{10, 10}}, false},
    {"a new member", {100, 100}, {0}, {{40, 0}}, {{20, 20}}, false},
    {"by capacity", {100, 300}, {0}, {{40, 0}}, {{10, 30}}, false},
    {"two volumes, a third member",
     {100, 100, 100},
     {0},
     {{30, 30, 0}, {15, 15, 0}},
     {{20, 20, 20}, {10, 10, 10}},
     false},
    {"small differences stay", {100, 100}, {0}, {{12, 10}}, {{12, 10}}, false},
    {"one page stays", {100, 100}, {0}, {{2, 0}}, {{2, 0}}, false},
    {"three members at most",
     {100, 100, 100, 100},
     {0},
     {{20, 20, 20, 0}},
     {{20, 20, 20, 0}},
     false},
    {"an empty fourth takes the place of a full one",
     {100, 100, 100, 100},
     {0},
     {{30, 30, 30, 0}, {60, 0, 0, 0}},
     {{0, 30, 30, 30}, {20, 20, 20, 0}},
     false},
    {"but not to be emptied itself the next time",
     {100, 100, 100, 100},
     {0},
     {{90, 90, 90, 0}},
     {{90, 90, 90, 0}},
     false},
    {"a drain", {100, 100, 100}, {'d'}, {{10, 10, 10}}, {{0, 15, 15}}, false},
    {"a drain alone", {100, 100, 100}, {'d'}, {{10, 40, 0}}, {{0, 40, 10}}, true},
    {"a drain into what room there is", {100, 12, 5}, {'d'}, {{10, 5, 3}}, {{1, 12, 5}}, true},
    {"an offline member is left alone",
     {100, 100, 100},
     {0, 'o'},
     {{30, 10, 0}},
     {{15, 10, 15}},
     false},
    {"a drained member that is offline", {100, 100}, {'x'}, {{10, 10}}, {{10, 10}}, false},
    {"what persists stays where it persists",
     {100, 100, 100},
     {0, 'v'},
     {{40, 0, 0}},
     {{20, 0, 20}},
     false},
    {"no room", {100, 10}, {'d'}, {{20, 10}}, {{20, 10}}, true},
};

static void describe(const struct capacity_case *one, struct balance_pool *pool,
		     struct balance_volume *volumes)
{
	*pool = (struct balance_pool){.volumes = volumes, .volume_count = VOLUMES};
	for (unsigned m = 0; m < MEMBERS && one->capacity[m]; m++) {
		struct balance_member *member = &pool->members[pool->member_count++];
		char kind = one->kind[m];
		*member = (struct balance_member){
		    .pages = one->capacity[m],
		    .takes = !kind || kind == 'v',
		    .gives = kind != 'o' && kind != 'x',
		    .leaving = kind == 'd' || kind == 'x',
		    .durable = kind != 'v',
		};
	}
	for (unsigned v = 0; v < VOLUMES; v++)
		for (unsigned m = 0; m < MEMBERS; m++) {
			volumes[v].pages[m] = one->before[v][m];
			pool->members[m].used += one->before[v][m];
		}
}

static void capacity(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(capacity_cases); i++) {
		const struct capacity_case *one = &capacity_cases[i];
		struct balance_volume volumes[VOLUMES] = {{{0}}};
		struct balance_transfer transfers[TRANSFERS];
		struct balance_pool pool;

		describe(one, &pool, volumes);
		unsigned count = balance_capacity(&pool, one->only_leaving, transfers, TRANSFERS);
		for (unsigned t = 0; t < count; t++) {
			uint32_t *pages = volumes[transfers[t].volume].pages;
			assert_true(pages[transfers[t].from] >= transfers[t].pages);
			pages[transfers[t].from] -= transfers[t].pages;
			pages[transfers[t].to] += transfers[t].pages;
		}
		for (unsigned v = 0; v < VOLUMES; v++)
			for (unsigned m = 0; m < MEMBERS; m++)
				if (volumes[v].pages[m] != one->after[v][m])
					fail_msg("%s: volume %u has %u pages on member %u, not %u",
						 one->name, v, volumes[v].pages[m], m,
						 one->after[v][m]);
	}
}

/* Whatever the pool: no member gets more than fits, none of those that give nothing gives, and a
 * second plan after the first has nothing more to do of any weight. */
static void capacity_at_random(void **state)
{
	struct rng rng;

	rng_init(&rng, 4, 4);
	for (int round = 0; round < 20000; round++) {
		struct capacity_case one = {.name = "random"};
		struct balance_volume volumes[VOLUMES] = {{{0}}};
		struct balance_transfer transfers[TRANSFERS];
		struct balance_pool pool;
		uint32_t left[MEMBERS];

		for (unsigned m = 0; m < MEMBERS; m++) {
			one.capacity[m] = left[m] = (uint32_t)(10 + rng_below(&rng, 100));
			one.kind[m] = "\0\0\0\0dovx"[rng_below(&rng, 8)];
		}
		for (unsigned v = 0; v < VOLUMES; v++)
			for (unsigned m = 0; m < MEMBERS; m++) {
				one.before[v][m] = (uint32_t)rng_below(&rng, left[m] + 1);
				left[m] -= one.before[v][m];
			}
		describe(&one, &pool, volumes);
		unsigned count = balance_capacity(&pool, rng_below(&rng, 2), transfers, TRANSFERS);
		for (unsigned t = 0; t < count; t++) {
			const struct balance_transfer *transfer = &transfers[t];
			uint32_t *pages = volumes[transfer->volume].pages;
			struct balance_member *to = &pool.members[transfer->to];

			assert_true(transfer->pages > 0 && transfer->from != transfer->to);
			assert_true(pages[transfer->from] >= transfer->pages);
			assert_true(pool.members[transfer->from].gives && to->takes);
			pages[transfer->from] -= transfer->pages;
			pages[transfer->to] += transfer->pages;
			to->used += transfer->pages;
			pool.members[transfer->from].used -= transfer->pages;
			if (to->used > to->pages)
				fail_msg("round %d: more than fits", round);
		}
	}
}

static void drain_room(void **state)
{
	static const struct capacity_case one = {
	    "", {100, 50, 40}, {'d', 0, 'v'}, {{20, 10, 0}, {15, 5, 10}}, {{0}}, false};
	struct balance_volume volumes[VOLUMES] = {{{0}}};
	struct balance_pool pool;
	uint64_t pages, room;

	describe(&one, &pool, volumes);
	balance_drain_room(&pool, 0, &pages, &room);
	assert_int_equal(pages, 35);
	assert_int_equal(room, 35); /* what is in memory takes nothing that persists */
	pool.members[0].durable = false;
	balance_drain_room(&pool, 0, &pages, &room);
	assert_int_equal(room, 65);
}

/* ---- performance ---- */

struct judge_case {
	const char *name;
	uint64_t latency_ms[6][3]; /* of each round, the last one is judged */
	unsigned rounds, members;
	enum balance_verdict verdict;
};

static const struct judge_case judge_cases[] = {
    {"one member", {{50}}, 1, 1, BALANCE_ALONE},
    {"all fast", {{5, 2}, {5, 2}}, 2, 2, BALANCE_FAST},
    {"all slow", {{50, 45}, {50, 45}}, 2, 2, BALANCE_EVEN},
    {"once", {{5, 5}, {50, 5}}, 2, 2, BALANCE_ONCE},
    {"twice", {{50, 5}, {50, 5}}, 2, 2, BALANCE_SWAP},
    {"at the limit", {{25, 5}, {25, 5}}, 2, 2, BALANCE_SWAP},
    {"below the limit", {{24, 5}, {24, 5}}, 2, 2, BALANCE_EVEN},
    {"an idle one is fast", {{30, 0}, {30, 0}}, 2, 2, BALANCE_SWAP},
    {"swings", {{50, 5}, {5, 5}, {50, 5}, {50, 5}}, 4, 2, BALANCE_SWINGS},
    {"has settled", {{50, 5}, {5, 5}, {50, 5}, {50, 5}, {50, 5}}, 5, 2, BALANCE_SWAP},
    {"the slowest of three", {{9, 30, 5}, {9, 30, 5}}, 2, 3, BALANCE_SWAP},
};

static enum balance_verdict judge(const struct judge_case *one, struct balance_watch *watch,
				  unsigned *slow, unsigned *fast)
{
	enum balance_verdict verdict = BALANCE_ALONE;

	for (unsigned r = 0; r < one->rounds; r++) {
		struct balance_load loads[3];
		for (unsigned m = 0; m < 3; m++)
			loads[m] = (struct balance_load){
			    .latency_ns = one->latency_ms[r][m] * NS_PER_MS, .usable = true};
		verdict = balance_judge(watch, loads, one->members, slow, fast);
	}
	return verdict;
}

static void verdicts(void **state)
{
	unsigned slow = 9, fast = 9;

	for (size_t i = 0; i < ARRAY_SIZE(judge_cases); i++) {
		struct balance_watch watch = {.round = 0};
		enum balance_verdict verdict = judge(&judge_cases[i], &watch, &slow, &fast);
		if (verdict != judge_cases[i].verdict)
			fail_msg("%s: %s", judge_cases[i].name, balance_verdict_words[verdict]);
	}
	assert_int_equal(slow, 1);
	assert_int_equal(fast, 2);
}

/* After a swap the other one is slow: what was moved is not moved back at once. */
static void roles_turn(void **state)
{
	static const struct judge_case there = {"", {{50, 5}, {50, 5}}, 2, 2, BALANCE_SWAP};
	static const struct judge_case back = {
	    "", {{5, 50}, {5, 50}, {5, 50}}, 3, 2, BALANCE_TURNED};
	struct balance_watch watch = {.round = 0};
	unsigned slow, fast;

	assert_int_equal(judge(&there, &watch, &slow, &fast), BALANCE_SWAP);
	watch.swapped_round = watch.round;
	watch.swapped_from = slow;
	watch.swapped_to = fast;
	assert_int_equal(judge(&back, &watch, &slow, &fast), BALANCE_TURNED);
	assert_int_equal(judge(&back, &watch, &slow, &fast), BALANCE_SWAP); /* it is for good */
}

static void peers(void **state)
{
	struct balance_load loads[4] = {
	    {.latency_ns = 60 * NS_PER_MS, .usable = true},
	    {.latency_ns = 5 * NS_PER_MS, .usable = true, .ops_a_drive = 9},
	    {.latency_ns = 5 * NS_PER_MS, .usable = true, .ops_a_drive = 3},
	    {.latency_ns = 50 * NS_PER_MS, .usable = true},
	};
	static const uint32_t all[4] = {1, 1, 1, 1}, some[4] = {1, 1, 0, 1}, slow[4] = {1, 0, 0, 1};

	assert_int_equal(balance_peer(loads, 4, 0, all), 2);
	assert_int_equal(balance_peer(loads, 4, 0, some), 1);
	assert_int_equal(balance_peer(loads, 4, 0, slow), 4); /* hardly faster is not enough */
	loads[2].usable = false;
	assert_int_equal(balance_peer(loads, 4, 0, all), 1);
}

static void pairs(void **state)
{
	struct balance_top hot = {.count = 0}, cold = {.count = 0};
	struct balance_swaps swaps = {.count = 0};

	for (uint32_t i = 0; i < 100; i++) {
		balance_top_hot(&hot, (struct balance_page){i, (uint16_t)(i * 7 % 100)});
		balance_top_cold(&cold, (struct balance_page){1000 + i, (uint16_t)(i * 3 % 100)});
	}
	assert_int_equal(hot.count, BALANCE_SWAPS_MAX);
	for (unsigned i = 0; i < BALANCE_SWAPS_MAX; i++) {
		assert_int_equal(hot.pages[i].heat, 99 - i);
		assert_int_equal(cold.pages[i].heat, i);
	}
	balance_pair(&swaps, &hot, &cold, 0, 0, 1);
	/* Only while the hot page has clearly more requests than the cold one. */
	assert_int_equal(swaps.count, 19);
	assert_int_equal(swaps.swaps[0].hot.heat, 99);
	assert_int_equal(swaps.swaps[0].cold.heat, 0);
	/* Another volume's better pairs come first. */
	hot.count = cold.count = 0;
	balance_top_hot(&hot, (struct balance_page){5, 500});
	balance_top_cold(&cold, (struct balance_page){6, 0});
	balance_pair(&swaps, &hot, &cold, 1, 0, 1);
	assert_int_equal(swaps.count, 20);
	assert_int_equal(swaps.swaps[0].volume, 1);
	balance_limit(&swaps, 4 * 700);
	assert_int_equal(swaps.count, 3); /* 500 + 99 + 97 */
	balance_limit(&swaps, 1);
	assert_int_equal(swaps.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(capacity),	  cmocka_unit_test(capacity_at_random),
	    cmocka_unit_test(drain_room), cmocka_unit_test(verdicts),
	    cmocka_unit_test(roles_turn), cmocka_unit_test(peers),
	    cmocka_unit_test(pairs),
	};
	return cmocka_run_group_tests_name("balance_plan", tests, NULL, NULL);
}
