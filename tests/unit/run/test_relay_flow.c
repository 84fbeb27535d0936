/* SPDX-License-Identifier: MIT
 *
 * The pure parts of the relay: PDU framing, delay, loss, black holes above a size, damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/run/relay_flow.h"

struct rig {
	struct relay_flow flow;
	struct relay_digests digests;
	struct relay_weather weather;
	struct rng rng;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);

	if (!rig || relay_flow_init(&rig->flow) < 0)
		return -1;
	rng_init(&rig->rng, 7, 1);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	relay_flow_done(&rig->flow);
	free(rig);
	return 0;
}

static void put(struct rig *rig, const void *bytes, size_t size, uint64_t now_ns)
{
	const uint8_t *from = bytes;

	while (size) {
		uint8_t *to;
		size_t n = MIN_OF(relay_flow_room(&rig->flow, &to), size);

		assert_true(n > 0);
		memcpy(to, from, n);
		relay_flow_took(&rig->flow, n, now_ns, &rig->weather, &rig->digests, &rig->rng);
		from += n;
		size -= n;
	}
}

/* What may leave at NOW_NS; it leaves. */
static size_t take(struct rig *rig, uint64_t now_ns, uint8_t *out)
{
	const uint8_t *from;
	uint64_t due_ns;
	size_t n, all = 0;

	while ((n = relay_flow_ready(&rig->flow, now_ns, &from, &due_ns)) > 0) {
		if (out)
			memcpy(out + all, from, n);
		relay_flow_sent(&rig->flow, n);
		all += n;
	}
	return all;
}

static size_t make_pdu(uint8_t *out, uint8_t opcode, uint32_t data_bytes)
{
	size_t size = RELAY_BHS_BYTES + (size_t)round_up_u64(data_bytes, 4);

	memset(out, 0, size);
	out[0] = opcode;
	put_be24(out + 5, data_bytes);
	return size;
}

static size_t make_login_response(uint8_t *out, const char *text, size_t text_bytes, bool final)
{
	size_t size = make_pdu(out, 0x23, (uint32_t)text_bytes);

	out[1] = final ? 0x87 : 0x04;
	memcpy(out + RELAY_BHS_BYTES, text, text_bytes);
	return size;
}

/* In pieces of every size: the same PDUs, at the same places. */
static void frames_any_pieces(void **state)
{
	uint8_t stream[8192];
	size_t size = 0;
	static const uint32_t data[] = {0, 5, 512, 3000, 0, 1};

	for (size_t i = 0; i < ARRAY_SIZE(data); i++)
		size += make_pdu(stream + size, 0x25, data[i]);
	for (size_t piece = 1; piece < 100; piece++) {
		struct relay_pdu pdu = {.have = 0};
		struct relay_digests digests = {.header = false};
		struct relay_pdu_seen seen;
		size_t count = 0;

		for (size_t at = 0; at < size;) {
			at += relay_pdu_step(&pdu, &digests, stream + at, MIN_OF(piece, size - at),
					     &seen);
			if (!seen.header)
				continue;
			assert_int_equal(seen.opcode, 0x25);
			assert_int_equal(seen.wire_bytes,
					 RELAY_BHS_BYTES + round_up_u64(data[count], 4));
			count++;
		}
		assert_int_equal(count, ARRAY_SIZE(data));
		assert_int_equal(pdu.have, 0);
	}
}

/* Digests count from the full feature phase on, and only when they were agreed on. */
static void learns_digests(void **state)
{
	static const char agreed[] = "HeaderDigest=CRC32C\0DataDigest=None";
	static const char offered[] = "HeaderDigest=CRC32C,None";
	struct relay_pdu pdu = {.have = 0};
	struct relay_digests digests = {.header = false};
	struct relay_pdu_seen seen;
	uint8_t bytes[600];
	size_t size = make_login_response(bytes, offered, sizeof offered, false);

	for (size_t at = 0; at < size;)
		at += relay_pdu_step(&pdu, &digests, bytes + at, size - at, &seen);
	assert_false(digests.header_agreed);
	size = make_login_response(bytes, agreed, sizeof agreed, true);
	for (size_t at = 0; at < size;)
		at += relay_pdu_step(&pdu, &digests, bytes + at, 1, &seen);
	assert_true(digests.header);
	assert_false(digests.data);
	(void)make_pdu(bytes, 0x25, 512);
	(void)relay_pdu_step(&pdu, &digests, bytes, RELAY_BHS_BYTES, &seen);
	assert_int_equal(seen.wire_bytes, RELAY_BHS_BYTES + 4 + 512);
}

static void passes_unchanged(void **state)
{
	struct rig *rig = *state;
	uint8_t *bytes = malloc(RELAY_FLOW_BYTES), *out = malloc(RELAY_FLOW_BYTES);
	size_t sizes[] = {1, 4096, RELAY_FLOW_BYTES - 100, RELAY_FLOW_BYTES, 77};

	assert_non_null(bytes);
	assert_non_null(out);
	rng_fill(&rig->rng, bytes, RELAY_FLOW_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put(rig, bytes, sizes[i], i);
		assert_int_equal(take(rig, i, out), sizes[i]);
		assert_memory_equal(out, bytes, sizes[i]);
	}
	free(bytes);
	free(out);
}

static void delays_in_order(void **state)
{
	struct rig *rig = *state;
	const uint8_t *from;
	uint64_t due_ns;

	rig->weather = (struct relay_weather){.delay_ns = 10 * NS_PER_MS};
	put(rig, "abcd", 4, 0);
	put(rig, "efgh", 4, 5 * NS_PER_MS);
	assert_int_equal(take(rig, 10 * NS_PER_MS - 1, NULL), 0);
	assert_int_equal(relay_flow_ready(&rig->flow, 0, &from, &due_ns), 0);
	assert_int_equal(due_ns, 10 * NS_PER_MS);
	assert_int_equal(take(rig, 10 * NS_PER_MS, NULL), 4);
	/* The delay ends: what is late still comes first. */
	rig->weather.delay_ns = 0;
	put(rig, "i", 1, 11 * NS_PER_MS);
	assert_int_equal(take(rig, 14 * NS_PER_MS, NULL), 0);
	assert_int_equal(take(rig, 15 * NS_PER_MS, NULL), 5);
}

/* More stretches than marks: late perhaps, lost never. */
static void marks_are_bounded(void **state)
{
	struct rig *rig = *state;
	size_t count = RELAY_FLOW_MARKS + 100;

	rig->weather.delay_ns = NS_PER_S;
	for (size_t i = 0; i < count; i++)
		put(rig, "x", 1, i);
	assert_int_equal(rig->flow.mark_count, RELAY_FLOW_MARKS);
	assert_int_equal(take(rig, NS_PER_S + count, NULL), count);
}

static void loss_stalls(void **state)
{
	struct rig *rig = *state;
	uint64_t late = 0, quick = 0, n = 4000;
	static const uint8_t chunk[8 * RELAY_SEGMENT_BYTES];

	rig->weather = (struct relay_weather){.loss = 0.01};
	for (uint64_t i = 0; i < n; i++) {
		uint64_t now_ns = i * 100 * NS_PER_S;
		size_t size = i % 2 ? 100 : sizeof chunk;

		put(rig, chunk, size, now_ns);
		if (take(rig, now_ns, NULL) == size)
			continue;
		if (take(rig, now_ns + 10 * NS_PER_MS, NULL) == size) {
			quick++;
			continue;
		}
		assert_int_equal(take(rig, now_ns + RELAY_TIMEOUT_MS * NS_PER_MS - 1, NULL), 0);
		assert_int_equal(take(rig, now_ns + 99 * NS_PER_S, NULL), size);
		late++;
	}
	/* 2000 x 1 lone segments and 2000 x 3 last ones of eight; 2000 x 5 with enough behind them.
	 */
	assert_in_range(late, 50, 110);
	assert_in_range(quick, 65, 130);
	assert_in_range(rig->flow.stalls, late + quick, late + quick + 40);
}

static void large_pdus_vanish(void **state)
{
	struct rig *rig = *state;
	uint8_t bytes[4096];
	size_t small = make_pdu(bytes, 0x01, 1448 - 48), large;

	rig->weather = (struct relay_weather){.above_bytes = 1500};
	put(rig, bytes, small, 0);
	assert_int_equal(take(rig, 0, NULL), small);
	large = make_pdu(bytes, 0x01, 1452 - 48);
	put(rig, bytes, 10, 0); /* a packet of its own */
	assert_int_equal(take(rig, 0, NULL), 10);
	put(rig, bytes + 10, large - 10, 0);
	assert_int_equal(take(rig, NS_PER_S, NULL), 0);
	/* All behind it waits, small or not. */
	small = make_pdu(bytes, 0x00, 0);
	put(rig, bytes, small, 0);
	assert_int_equal(take(rig, NS_PER_S, NULL), 0);
	relay_flow_unstick(&rig->flow);
	assert_int_equal(take(rig, NS_PER_S, NULL), large - 10 + small);
}

static void damages_one_header(void **state)
{
	struct rig *rig = *state;
	uint8_t bytes[256], out[256];
	size_t size = make_pdu(bytes, 0x25, 64);

	rig->weather = (struct relay_weather){.corrupt = 1};
	put(rig, bytes, size, 0);
	put(rig, bytes, size, 0);
	assert_int_equal(take(rig, 0, out), 2 * size);
	assert_int_equal(rig->weather.corrupt, 0);
	assert_int_equal(rig->flow.corrupted, 1);
	assert_memory_equal(out, bytes, RELAY_BHS_BYTES - 1);
	assert_int_not_equal(out[RELAY_BHS_BYTES - 1], bytes[RELAY_BHS_BYTES - 1]);
	assert_memory_equal(out + RELAY_BHS_BYTES, bytes + RELAY_BHS_BYTES, size - RELAY_BHS_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frames_any_pieces),
	    cmocka_unit_test(learns_digests),
	    cmocka_unit_test_setup_teardown(passes_unchanged, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(delays_in_order, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(marks_are_bounded, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(loss_stalls, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(large_pdus_vanish, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(damages_one_header, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("relay_flow", tests, NULL, NULL);
}
