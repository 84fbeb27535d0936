/* SPDX-License-Identifier: MIT
 *
 * Bugs other initiators had above the session: unit attentions, ALUA, and what a lost connection
 * does to writes.
 */
#include "rig.h"

enum { BLOCKS = 8, BYTES = BLOCKS * PEER_BLOCK_BYTES, GOOD = 0, CHECK_CONDITION = 2 };

struct sense {
	uint8_t key, asc, ascq;
};

/* ---- 65 ---- */

static bool limited_unmap(struct peer *peer, const struct peer_pdu *pdu)
{
	if ((pdu->bhs[0] & 0x3f) == PEER_COMMAND && pdu->bhs[32] == 0x42) {
		assert_int_equal(pdu->size, 24);
		assert_in_range(get_be32(pdu->data + 16), 1, 1000);
	}
	return false;
}

static void test_prior_65_unmap_keeps_to_the_limit(void **unused)
{
	struct device_io dio = {0};
	struct device_rig rig;

	device_open(&rig, 1);
	rig.peers[0].script = limited_unmap; /* the peer's limit is 1000 blocks */
	device_start(&rig);
	memset(rig.peers[0].disk, 0x65, (size_t)PEER_BLOCKS * PEER_BLOCK_BYTES);
	device_submit(&rig, &dio, IO_UNMAP, 0, (uint64_t)PEER_BLOCKS * PEER_BLOCK_BYTES, NULL);
	device_expect(&rig, &rig.done, 1);
	assert_int_equal(dio.io.status, 0);
	assert_int_equal(rig.peers[0].unmaps, 3);
	for (size_t i = 0; i < (size_t)PEER_BLOCKS * PEER_BLOCK_BYTES; i += PEER_BLOCK_BYTES)
		assert_int_equal(rig.peers[0].disk[i], 0);
	device_close(&rig);
}

/* ---- 83: unit attentions ---- */

struct attentions {
	const struct sense *list;
	unsigned count, told, writes;
	bool endless;
};

static bool with_attentions(struct peer *peer, const struct peer_pdu *pdu)
{
	struct device_rig *rig = peer->script_arg;
	struct attentions *attentions = rig->arg;
	const struct sense *sense;

	if (!rig_is_write(pdu))
		return false;
	attentions->writes++;
	if (attentions->told == attentions->count && !attentions->endless)
		return false;
	sense = &attentions->list[attentions->told % attentions->count];
	attentions->told++;
	peer_respond(peer, pdu->bhs, CHECK_CONDITION, sense->key, sense->asc, sense->ascq);
	return true;
}

static void write_through(struct attentions *attentions, int want_status)
{
	static uint8_t out[BYTES];
	struct device_io dio = {0};
	struct device_rig rig;

	device_open(&rig, 1);
	rig.arg = attentions;
	rig.peers[0].script = with_attentions;
	device_start(&rig);
	rig_fill(out, sizeof out, attentions->list[0].asc);
	device_submit(&rig, &dio, IO_WRITE, 0, BYTES, out);
	device_expect(&rig, &rig.done, 1);
	device_run_ms(&rig, 5);
	assert_int_equal(dio.ends, 1);
	assert_int_equal(dio.io.status, want_status);
	if (want_status == 0)
		assert_memory_equal(rig.peers[0].disk, out, BYTES);
	device_close(&rig);
}

static void test_prior_83_one_retry_for_each_condition(void **unused)
{
	static const struct sense conditions[] = {
	    {6, 0x29, 0x00}, {6, 0x29, 0x07}, {6, 0x2a, 0x01}, {6, 0x2a, 0x06}, {6, 0x2a, 0x09},
	    {6, 0x3f, 0x03}, {6, 0x3f, 0x05}, {6, 0x3f, 0x0e}, {6, 0x28, 0x00}, {6, 0x2f, 0x00},
	};
	struct attentions attentions;

	for (unsigned i = 0; i < ARRAY_SIZE(conditions); i++) {
		attentions = (struct attentions){.list = &conditions[i], .count = 1};
		write_through(&attentions, 0);
		assert_int_equal(attentions.writes, 2);
	}
	/* Several that have queued up, told one by one. */
	attentions = (struct attentions){.list = conditions, .count = 4};
	write_through(&attentions, 0);
	assert_int_equal(attentions.writes, 5);
	/* A target that repeats one for ever does not keep the initiator for ever. */
	attentions = (struct attentions){.list = conditions, .count = 1, .endless = true};
	write_through(&attentions, -EIO);
	assert_in_range(attentions.writes, 2, 40);
}

/* ---- 85, 87: ALUA ---- */

struct transition {
	uint64_t begin_ns, length_ns;
	bool told; /* the unit attention */
	unsigned refused;
};

static bool in_transition(struct peer *peer, const struct peer_pdu *pdu)
{
	struct device_rig *rig = peer->script_arg;
	struct transition *transition = rig->arg;
	uint64_t now = loop_now_ns(rig->loop);

	if (!rig_is_write(pdu))
		return false;
	if (!transition->begin_ns)
		transition->begin_ns = now;
	if (now - transition->begin_ns >= transition->length_ns)
		return false;
	transition->refused++;
	if (!transition->told)
		peer_respond(peer, pdu->bhs, CHECK_CONDITION, 6, 0x2a, 0x06);
	else
		peer_respond(peer, pdu->bhs, CHECK_CONDITION, 2, 0x04, 0x0a);
	transition->told = true;
	return true;
}

/* The same by a unit that can be asked: TPGS in INQUIRY, REPORT TARGET PORT GROUPS. */
static bool answer_alua(struct peer *peer, const struct peer_pdu *pdu, bool transitioning)
{
	static const uint8_t port[16] = {0x51, 0x94, 0, 4, 0, 0, 0, 1,
					 0x51, 0x95, 0, 4, 0, 0, 0, 1};
	const uint8_t *cdb = pdu->bhs + 32;
	static const uint8_t names[28] = "PEER    SCRIPTED        1.0 ";
	uint8_t data[40] = {0};

	if ((pdu->bhs[0] & 0x3f) != PEER_COMMAND)
		return false;
	if (cdb[0] == 0x12 && !(cdb[1] & 1)) {
		data[2] = 6;
		data[4] = 31;
		data[5] = 0x10; /* implicit */
		memcpy(data + 8, names, sizeof names);
		peer_data_in(peer, pdu->bhs, data, 36);
	} else if (cdb[0] == 0x12 && cdb[2] == 0x83) {
		data[1] = 0x83;
		data[3] = 20 + sizeof port;
		memcpy(data + 4, (uint8_t[]){1, 3, 0, 16, 0x60, 9, 9, 9}, 8);
		memcpy(data + 24, port, sizeof port);
		peer_data_in(peer, pdu->bhs, data, 24 + sizeof port);
	} else if (cdb[0] == 0xa3 && (cdb[1] & 0x1f) == 0x0a && cdb[1] & 0xe0) {
		/* As some arrays do: the extended header is not known. */
		peer_respond(peer, pdu->bhs, CHECK_CONDITION, 5, 0x24, 0);
	} else if (cdb[0] == 0xa3 && (cdb[1] & 0x1f) == 0x0a) {
		data[3] = 12;
		data[4] = transitioning ? 0x0f : 0x00;
		data[5] = 0x83;
		data[7] = 1;  /* the group */
		data[11] = 1; /* one port: number 1 */
		data[15] = 1;
		peer_data_in(peer, pdu->bhs, data, 16);
	} else {
		return false;
	}
	return true;
}

static bool alua_transition(struct peer *peer, const struct peer_pdu *pdu)
{
	struct device_rig *rig = peer->script_arg;
	const struct transition *transition = rig->arg;
	uint64_t now = loop_now_ns(rig->loop);
	bool is_over = !transition->begin_ns || now - transition->begin_ns >= transition->length_ns;

	return answer_alua(peer, pdu, !is_over) || in_transition(peer, pdu);
}

static void write_in_transition(bool (*script)(struct peer *peer, const struct peer_pdu *pdu),
				bool told_to_wait)
{
	enum { WRITES = 16 };
	static uint8_t out[WRITES][BYTES];
	static struct device_io dios[WRITES];
	struct transition transition = {.length_ns = 600 * NS_PER_MS};
	struct mpio_path_info info;
	struct device_rig rig;

	device_open(&rig, 1);
	rig.arg = &transition;
	rig.peers[0].script = script;
	device_start(&rig);
	for (unsigned i = 0; i < WRITES; i++) {
		rig_fill(out[i], BYTES, i);
		device_submit(&rig, &dios[i], IO_WRITE, i * BYTES, BYTES, out[i]);
	}
	device_expect(&rig, &rig.done, WRITES);
	for (unsigned i = 0; i < WRITES; i++) {
		assert_int_equal(dios[i].ends, 1);
		assert_int_equal(dios[i].io.status, 0);
	}
	assert_memory_equal(rig.peers[0].disk, out, sizeof out);
	/* Nobody who knows that it is going on sends all again and again. */
	assert_true(transition.refused > 1);
	assert_true(!told_to_wait || transition.refused <= 3 * WRITES);
	assert_true(loop_now_ns(rig.loop) - transition.begin_ns >= transition.length_ns);
	/* The same session all the time, and none of it held against the path. */
	assert_int_equal(rig.downs, 0);
	assert_int_equal(rig.peers[0].logins, 1);
	mpio_path_info(rig.mpio, 0, &info);
	assert_int_equal(info.ledger->losses, 0);
	assert_int_equal(info.ledger->errors, 0);
	device_close(&rig);
}

static void test_prior_85_transition_is_no_path_failure(void **unused)
{
	write_in_transition(in_transition, false);
	write_in_transition(alua_transition, true);
}

static bool in_standby(struct peer *peer, const struct peer_pdu *pdu)
{
	struct device_rig *rig = peer->script_arg;

	if (peer != &rig->peers[0] || (!rig_is_write(pdu) && !rig_is_read(pdu)))
		return false;
	peer_respond(peer, pdu->bhs, CHECK_CONDITION, 2, 0x04, 0x0b);
	return true;
}

static void test_prior_87_standby_sends_io_elsewhere(void **unused)
{
	static uint8_t out[BYTES], in[BYTES];
	struct device_io dio = {0};
	struct device_rig rig;

	device_open(&rig, 2);
	rig.peers[0].script = rig.peers[1].script = in_standby;
	device_start(&rig);
	rig_fill(out, sizeof out, 87);
	device_submit(&rig, &dio, IO_WRITE, 0, BYTES, out);
	device_expect(&rig, &rig.done, 1);
	assert_int_equal(dio.io.status, 0);
	device_submit(&rig, &dio, IO_READ, 0, BYTES, in);
	device_expect(&rig, &rig.done, 2);
	assert_int_equal(dio.io.status, 0);
	assert_memory_equal(in, out, BYTES);
	assert_int_equal(rig.peers[1].writes, 1);
	assert_int_equal(rig.peers[0].writes, 0);
	assert_int_equal(rig.peers[0].logins, 1); /* its session is in order */
	device_close(&rig);
}

/* ---- 90: a write that is executed although nobody hears of it ---- */

struct replay {
	unsigned armed; /* writes still to be treated so */
	bool hold;	/* executed late, when the initiator comes back; else at once */
	bool holding;
	uint64_t held_lba;
	uint8_t held[BYTES];
	unsigned executed;
};

static void execute(struct replay *replay, struct peer *peer, uint64_t lba, const uint8_t *data)
{
	memcpy(peer->disk + lba * PEER_BLOCK_BYTES, data, BYTES);
	replay->executed++;
}

static bool executes_in_silence(struct peer *peer, const struct peer_pdu *pdu)
{
	struct device_rig *rig = peer->script_arg;
	struct replay *replay = rig->arg;

	if (peer != &rig->peers[0])
		return false;
	/* The last moment at which the old session may have an effect: before the new login is
	 * answered. */
	if ((pdu->bhs[0] & 0x3f) == PEER_LOGIN && replay->holding) {
		replay->holding = false;
		execute(replay, peer, replay->held_lba, replay->held);
	}
	if (!rig_is_write(pdu) || !replay->armed)
		return replay->holding; /* deaf and dumb */
	replay->armed--;
	assert_int_equal(pdu->size, BYTES);
	if (replay->hold) {
		replay->holding = true;
		replay->held_lba = rig_lba(pdu);
		memcpy(replay->held, pdu->data, BYTES);
	} else {
		execute(replay, peer, rig_lba(pdu), pdu->data);
		peer_drop(peer, false);
	}
	return true;
}

static uint8_t old_bytes[BYTES], new_bytes[BYTES];
static struct device_io newer;

/* The caller goes on at once: other bytes to the same blocks. */
static void write_newer(struct device_io *dio)
{
	device_submit(dio->rig, &newer, IO_WRITE, dio->io.offset_bytes, BYTES, new_bytes);
}

static void lose_a_write(unsigned paths, bool hold, int fence)
{
	struct replay replay = {.armed = 1, .hold = hold};
	struct device_io older = {.then = write_newer};
	struct device_rig rig;

	device_open(&rig, paths);
	rig.arg = &replay;
	rig.config.fence = fence;
	rig.config.io_timeout_ns = 100 * NS_PER_MS;
	for (unsigned i = 0; i < paths; i++)
		rig.peers[i].script = executes_in_silence;
	device_start(&rig);
	newer = (struct device_io){0};
	rig_fill(old_bytes, BYTES, 90);
	rig_fill(new_bytes, BYTES, 91);
	device_submit(&rig, &older, IO_WRITE, 3 * BYTES, BYTES, old_bytes);
	device_expect(&rig, &rig.done, 2);
	/* The lost path comes back meanwhile: nothing is replayed there. */
	device_expect(&rig, &rig.ups, paths + 1);
	device_run_ms(&rig, 50);
	assert_int_equal(older.ends, 1);
	assert_int_equal(newer.ends, 1);
	assert_int_equal(older.io.status, 0);
	assert_int_equal(newer.io.status, 0);
	assert_int_equal(replay.executed, 1);
	/* Each was answered once: the older on what was left, the newer wherever it may. */
	assert_int_equal(rig.peers[0].writes + rig.peers[1].writes, 2);
	assert_true(paths == 1 || rig.peers[1].writes > 0);
	if (fence == MPIO_FENCE_NONE)
		assert_memory_equal(rig.peers[0].disk + 3 * BYTES, old_bytes, BYTES);
	else
		assert_memory_equal(rig.peers[0].disk + 3 * BYTES, new_bytes, BYTES);
	device_close(&rig);
}

static void test_prior_90_executed_and_closed(void **unused)
{
	lose_a_write(1, false, MPIO_FENCE_RESET);
	lose_a_write(2, false, MPIO_FENCE_RESET);
}

static void test_prior_90_executed_late(void **unused)
{
	lose_a_write(1, true, MPIO_FENCE_RESET);
	lose_a_write(2, true, MPIO_FENCE_RESET);
	lose_a_write(2, true, MPIO_FENCE_STRICT);
}

/* Without the fence the newer write is destroyed: the test above can fail. */
static void test_prior_90_executed_late_without_a_fence(void **unused)
{
	lose_a_write(2, true, MPIO_FENCE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prior_65_unmap_keeps_to_the_limit),
	    cmocka_unit_test(test_prior_83_one_retry_for_each_condition),
	    cmocka_unit_test(test_prior_85_transition_is_no_path_failure),
	    cmocka_unit_test(test_prior_87_standby_sends_io_elsewhere),
	    cmocka_unit_test(test_prior_90_executed_and_closed),
	    cmocka_unit_test(test_prior_90_executed_late),
	    cmocka_unit_test(test_prior_90_executed_late_without_a_fence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
