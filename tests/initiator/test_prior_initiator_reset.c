/* SPDX-License-Identifier: MIT
 *
 * Bugs other initiators had in task management: LOGICAL UNIT RESET.
 */
#include "rig.h"

#include <errno.h>

enum { MANY = 16, FUNCTION_LUN_RESET = 5, COMPLETE = 0, NO_SUCH_LUN = 2, REJECTED = 255 };

static uint8_t memory[2 * MANY][8 * PEER_BLOCK_BYTES];
static struct owner_io oios[2 * MANY];

struct target {
	uint8_t reads[MANY][PEER_BHS_BYTES]; /* kept, not answered */
	unsigned kept;
	bool keep;
	unsigned resets;
	uint8_t reset_lun[8];
	int response; /* of the reset; negative: none, the connection ends */
};

static bool on_pdu(struct peer *peer, const struct peer_pdu *pdu)
{
	struct target *target = peer->script_arg;
	uint8_t bhs[PEER_BHS_BYTES];

	if (rig_is_read(pdu) && target->keep) {
		assert_true(target->kept < MANY);
		memcpy(target->reads[target->kept++], pdu->bhs, PEER_BHS_BYTES);
		return true;
	}
	if ((pdu->bhs[0] & 0x3f) != PEER_TASK_MANAGEMENT)
		return false;
	target->resets++;
	assert_int_equal(pdu->bhs[1] & 0x7f, FUNCTION_LUN_RESET);
	memcpy(target->reset_lun, pdu->bhs + 8, 8);
	if (target->response < 0) {
		peer_drop(peer, true);
		return true;
	}
	peer_header(peer, pdu->bhs, PEER_TASK_MANAGEMENT_RESPONSE, bhs);
	bhs[2] = (uint8_t)target->response;
	peer_send(peer, bhs, NULL, 0);
	return true;
}

struct reset {
	struct path_fence fence;
	unsigned ends;
	int status;
};

static void reset_done(struct path_fence *fence, int status)
{
	struct reset *reset = fence->owner;

	reset->ends++;
	reset->status = status;
}

static void begin_reset(struct rig *rig, struct reset *reset)
{
	*reset = (struct reset){.fence = {.done = reset_done, .owner = reset}};
	assert_int_equal(path_reset_unit(rig->owner.path, &reset->fence), 0);
	assert_int_equal(reset->ends, 0); /* never from within */
}

static void open_target(struct rig *rig, struct target *target, unsigned lun)
{
	*target = (struct target){.response = COMPLETE};
	rig_open(rig);
	rig->config.lun = lun;
	rig->peer.script = on_pdu;
	rig->peer.script_arg = target;
	rig_up(rig);
}

/* An initiator that cancels all it has when it resets one unit. */
static void test_prior_93_reset_of_one_unit_leaves_others_alone(void **unused)
{
	static struct target first, second;
	struct owner other;
	struct path_config config;
	struct peer peer;
	struct reset reset;
	struct rig rig;

	open_target(&rig, &first, 1);
	/* LUN 2, on the same loop. */
	second = (struct target){.response = COMPLETE};
	peer_open(&peer, rig.loop);
	peer.script = on_pdu;
	peer.script_arg = &second;
	config = owner_config(&other, peer.portal);
	config.lun = 2;
	assert_int_equal(owner_open(&other, rig.loop, &config), 0);
	assert_int_equal(path_connect(other.path), 0);
	assert_true(owner_wait(&other, &other.ups, 1, RIG_WAIT_S));
	first.keep = true;
	memset(oios, 0, sizeof oios);
	rig_fill(rig.peer.disk, sizeof memory, 93);
	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&rig.owner, &oios[i], IO_READ, i * 8, 8, memory[i]);
	rig_expect(&rig, &first.kept, MANY);
	reset = (struct reset){.fence = {.done = reset_done, .owner = &reset}};
	assert_int_equal(path_reset_unit(other.path, &reset.fence), 0);
	assert_true(owner_wait(&other, &reset.ends, 1, RIG_WAIT_S));
	assert_int_equal(reset.status, 0);
	assert_int_equal(get_be16(second.reset_lun), 2);
	assert_int_equal(first.resets, 0);
	assert_int_equal(rig.owner.done, 0);
	for (unsigned i = 0; i < MANY; i++)
		peer_data_in(&rig.peer, first.reads[i],
			     rig.peer.disk + (size_t)i * 8 * PEER_BLOCK_BYTES,
			     8 * PEER_BLOCK_BYTES);
	rig_expect(&rig, &rig.owner.ok, MANY);
	assert_memory_equal(memory, rig.peer.disk, MANY * sizeof memory[0]);
	path_free(other.path);
	peer_close(&peer);
	rig_close(&rig);
}

/* What is in flight to the unit itself ends once, and the path goes on. */
static void test_prior_93_own_io_ends_once(void **unused)
{
	static struct target target;
	struct reset reset;
	struct rig rig;

	open_target(&rig, &target, 1);
	target.keep = true;
	memset(oios, 0, sizeof oios);
	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&rig.owner, &oios[i], IO_READ, i * 8, 8, memory[i]);
	rig_expect(&rig, &target.kept, MANY);
	begin_reset(&rig, &reset);
	rig_expect(&rig, &reset.ends, 1);
	assert_int_equal(reset.status, 0);
	/* The target has ended them without an answer: it is up to the path to notice. */
	path_disconnect(rig.owner.path);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(oios[i].ends, 1);
	target.keep = false;
	rig_up(&rig);
	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&rig.owner, &oios[i], IO_READ, i * 8, 8, memory[i]);
	rig_expect(&rig, &rig.owner.ok, MANY);
	rig_close(&rig);
}

/* A reset that has not been done is not taken for one that has. */
static void test_prior_53_reset_that_failed_is_no_success(void **unused)
{
	static const int responses[] = {1, NO_SUCH_LUN, 5, REJECTED, -1};
	static struct target target;
	struct reset reset;
	struct rig rig;

	for (unsigned i = 0; i < ARRAY_SIZE(responses); i++) {
		open_target(&rig, &target, 7);
		target.response = responses[i];
		begin_reset(&rig, &reset);
		rig_expect(&rig, &reset.ends, 1);
		assert_int_equal(target.resets, 1);
		if (responses[i] < 0)
			assert_int_equal(reset.status, -ENOTCONN);
		else
			assert_true(reset.status < 0);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prior_53_reset_that_failed_is_no_success),
	    cmocka_unit_test(test_prior_93_reset_of_one_unit_leaves_others_alone),
	    cmocka_unit_test(test_prior_93_own_io_ends_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
