/* SPDX-License-Identifier: MIT
 *
 * Raw commands of the iSCSI path against a scripted target.
 */
#include "tests/initiator/rig.h"

enum { MANY = 32 };

static struct raw_command inquiry(uint8_t *data, uint32_t size)
{
	return (struct raw_command){.command = {.cdb = {0x12, [4] = (uint8_t)size},
						.cdb_bytes = 6,
						.data = data,
						.data_bytes = size}};
}

static bool keep_inquiries(struct peer *peer, const struct peer_pdu *pdu)
{
	unsigned *kept = peer->script_arg;

	if ((pdu->bhs[0] & 0x3f) != PEER_COMMAND || pdu->bhs[32] != 0x12)
		return false;
	(*kept)++;
	return true;
}

static void raw_commands_end_in_every_way(void **unused)
{
	static uint8_t data[PATH_COMMANDS_MAX + 1][96];
	static struct owner_io oios[MANY];
	struct raw_command raws[PATH_COMMANDS_MAX + 1], ready = {.command.cdb_bytes = 6};
	unsigned kept = 0;
	struct rig rig;

	rig_open(&rig);
	rig.config.max_in_flight = MANY;
	rig_make_path(&rig);
	raws[0] = inquiry(data[0], 96);
	raw_submit(&rig.owner, &raws[0]);
	rig_expect(&rig, &raws[0].ends, 1);
	assert_int_equal(raws[0].command.result, PATH_NOT_SENT);
	rig_up(&rig);
	/* Although the path is full of I/O. */
	rig.peer.mute_io = true;
	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&rig.owner, &oios[i], IO_READ, i, 1, data[0]);
	raws[0] = inquiry(data[0], 96);
	raw_submit(&rig.owner, &raws[0]);
	rig_expect(&rig, &raws[0].ends, 1);
	assert_int_equal(raws[0].command.result, PATH_OK);
	assert_int_equal(raws[0].command.got_bytes, 36);
	assert_memory_equal(data[0] + 8, "PEER    SCRIPTED", 16);
	rig.peer.attentions = 1;
	raw_submit(&rig.owner, &ready);
	rig_expect(&rig, &ready.ends, 1);
	assert_int_equal(ready.command.result, PATH_SENSE);
	assert_int_equal(ready.command.sense_key, 6);
	assert_int_equal(ready.command.asc, 0x29);
	/* One too many; the rest is lost with the path. */
	rig.peer.script = keep_inquiries;
	rig.peer.script_arg = &kept;
	for (unsigned i = 0; i <= PATH_COMMANDS_MAX; i++) {
		raws[i] = inquiry(data[i], 96);
		raw_submit(&rig.owner, &raws[i]);
	}
	rig_expect(&rig, &raws[PATH_COMMANDS_MAX].ends, 1);
	assert_int_equal(raws[PATH_COMMANDS_MAX].command.result, PATH_NOT_SENT);
	rig_expect(&rig, &kept, PATH_COMMANDS_MAX);
	peer_drop(&rig.peer, true);
	rig_expect_down(&rig, 1, "reset");
	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++) {
		assert_int_equal(raws[i].ends, 1);
		assert_int_equal(raws[i].command.result, PATH_LOST);
	}
	/* The deadline of a command is also theirs. */
	rig.owner.path->config.io_timeout_ns = 100 * NS_PER_MS;
	rig.owner.path->config.keepalive_ns = 10 * NS_PER_MS;
	rig.peer.script = NULL;
	rig_up(&rig);
	rig.peer.script = keep_inquiries;
	raws[0] = inquiry(data[0], 96);
	raw_submit(&rig.owner, &raws[0]);
	rig_expect_down(&rig, 2, "no answer to a command");
	assert_int_equal(raws[0].command.result, PATH_LOST);
	rig_close(&rig);
}

/* Data to the target, and the functions that end it. */
static bool take_selection(struct peer *peer, const struct peer_pdu *pdu)
{
	unsigned *count = peer->script_arg;

	if ((pdu->bhs[0] & 0x3f) != PEER_COMMAND || pdu->bhs[32] != 0xa4)
		return false;
	assert_int_equal(pdu->size, 12);
	assert_int_equal(get_be32(pdu->bhs + 20), 12);
	assert_memory_equal(pdu->data, "group states", 12);
	(*count)++;
	peer_respond(peer, pdu->bhs, 0, 0, 0, 0);
	return true;
}

static void raw_commands_send_data(void **unused)
{
	static uint8_t data[] = "group states";
	struct raw_command raw = {.command = {.cdb = {0xa4, 0x0a, [9] = 12},
					      .cdb_bytes = 12,
					      .data = data,
					      .data_bytes = 12,
					      .to_target = true}};
	unsigned count = 0;
	struct rig rig;

	rig_open(&rig);
	rig_up(&rig);
	rig.peer.script = take_selection;
	rig.peer.script_arg = &count;
	raw_submit(&rig.owner, &raw);
	rig_expect(&rig, &raw.ends, 1);
	assert_int_equal(raw.command.result, PATH_OK);
	assert_int_equal(raw.command.got_bytes, 0);
	assert_int_equal(count, 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(raw_commands_end_in_every_way),
	    cmocka_unit_test(raw_commands_send_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
