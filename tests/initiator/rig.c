/* SPDX-License-Identifier: MIT
 *
 * Paths and devices against scripted targets.
 */
#include "rig.h"

#include <stdio.h>

enum { WRITE_16 = 0x8a, READ_16 = 0x88 };

void rig_open(struct rig *rig)
{
	*rig = (struct rig){0};
	assert_int_equal(loop_new_real(&rig->loop), 0);
	peer_open(&rig->peer, rig->loop);
	rig->peer.script_arg = rig;
	rig->config = owner_config(&rig->owner, rig->peer.portal);
}

void rig_make_path(struct rig *rig)
{
	assert_int_equal(owner_open(&rig->owner, rig->loop, &rig->config), 0);
}

void rig_connect(struct rig *rig)
{
	assert_int_equal(path_connect(rig->owner.path), 0);
}

void rig_up(struct rig *rig)
{
	unsigned ups;

	if (!rig->owner.path)
		rig_make_path(rig);
	ups = rig->owner.ups;
	rig_connect(rig);
	rig_expect(rig, &rig->owner.ups, ups + 1);
}

void rig_close(struct rig *rig)
{
	path_free(rig->owner.path);
	peer_close(&rig->peer);
	loop_free(rig->loop);
}

void rig_expect(struct rig *rig, const unsigned *count, unsigned want)
{
	if (!owner_wait(&rig->owner, count, want, RIG_WAIT_S))
		fail_msg("%u instead of %u; the path's last words: '%s'", *count, want,
			 rig->owner.why);
}

void rig_expect_down(struct rig *rig, unsigned downs, const char *why)
{
	rig_expect(rig, &rig->owner.downs, downs);
	assert_false(rig->owner.path->up);
	assert_true(rig->owner.completed_before_down);
	if (!strstr(rig->owner.why, why))
		fail_msg("'%s' does not say '%s'", rig->owner.why, why);
}

void device_open(struct device_rig *rig, unsigned count)
{
	*rig = (struct device_rig){.count = count};
	assert_true(count <= RIG_PEERS);
	assert_int_equal(loop_new_real(&rig->loop), 0);
	for (unsigned i = 0; i < count; i++) {
		peer_open(&rig->peers[i], rig->loop);
		rig->peers[i].script_arg = rig;
		if (i == 0)
			continue;
		free(rig->peers[i].disk);
		rig->peers[i].disk = rig->peers[0].disk;
	}
	for (int i = 0; mpio_policy_names[i]; i++)
		if (strcmp(mpio_policy_names[i], "failover-only") == 0)
			rig->config.policy = i;
	rig->config.no_path_ns = 20 * NS_PER_S;
	rig->config.max_retries = 30;
	rig->config.reconnect_min_ns = 20 * NS_PER_MS;
	rig->config.reconnect_max_ns = 100 * NS_PER_MS;
}

static void on_ready(void *arg, int status, const char *why)
{
	struct device_rig *rig = arg;

	rig->ready++;
	rig->ready_status = status;
}

static void on_event(void *arg, const struct mpio_event *event)
{
	struct device_rig *rig = arg;

	rig->ups += event->to == MPIO_PATH_UP && event->from != MPIO_PATH_UP;
	rig->downs += event->to == MPIO_PATH_DOWN;
}

void device_start(struct device_rig *rig)
{
	assert_int_equal(mpio_new(rig->loop, &rig->config, "rig", 1, &rig->mpio), 0);
	mpio_on_event(rig->mpio, on_event, rig);
	for (unsigned i = 0; i < rig->count; i++) {
		struct path_config config = {
		    .target = "iqn.2026-11.test.sanlab:peer",
		    .portal = rig->peers[i].portal,
		    .isid_qualifier = i + 1,
		};
		struct path *path;

		mpio_path_config(&rig->config, &config);
		assert_int_equal(path_new_iscsi(rig->loop, &config, &path), 0);
		assert_int_equal(mpio_add_path(rig->mpio, path), 0);
	}
	mpio_start(rig->mpio, 5 * NS_PER_S, on_ready, rig);
	device_expect(rig, &rig->ready, 1);
	assert_int_equal(rig->ready_status, 0);
	assert_int_equal(rig->ups, rig->count);
}

static void on_done(struct io *io)
{
	struct device_io *dio = io->owner;

	dio->ends++;
	dio->rig->done++;
	if (dio->then)
		dio->then(dio);
}

void device_submit(struct device_rig *rig, struct device_io *dio, enum io_op op,
		   uint64_t offset_bytes, uint64_t length_bytes, void *data)
{
	dio->rig = rig;
	dio->ends = 0;
	dio->iov = (struct iovec){data, data ? length_bytes : 0};
	dio->io = (struct io){
	    .op = op,
	    .offset_bytes = offset_bytes,
	    .length_bytes = length_bytes,
	    .iov = data ? &dio->iov : NULL,
	    .iov_count = data ? 1 : 0,
	    .done = on_done,
	    .owner = dio,
	};
	io_submit(mpio_layer(rig->mpio), &dio->io);
}

void device_expect(struct device_rig *rig, const unsigned *count, unsigned want)
{
	uint64_t deadline = loop_now_ns(rig->loop) + RIG_WAIT_S * NS_PER_S;

	while (*count < want && loop_now_ns(rig->loop) < deadline)
		assert_int_equal(loop_run_until(rig->loop, loop_now_ns(rig->loop) + NS_PER_MS), 0);
	assert_int_equal(*count, want);
}

void device_run_ms(struct device_rig *rig, unsigned milliseconds)
{
	uint64_t end = loop_now_ns(rig->loop) + milliseconds * NS_PER_MS;

	assert_int_equal(loop_run_until(rig->loop, end), 0);
}

void device_close(struct device_rig *rig)
{
	mpio_free(rig->mpio);
	for (unsigned i = rig->count; i-- > 0;) {
		if (i)
			rig->peers[i].disk = NULL; /* the first one's */
		peer_close(&rig->peers[i]);
	}
	loop_free(rig->loop);
}

bool rig_is_write(const struct peer_pdu *pdu)
{
	return (pdu->bhs[0] & 0x3f) == PEER_COMMAND && pdu->bhs[32] == WRITE_16;
}

bool rig_is_read(const struct peer_pdu *pdu)
{
	return (pdu->bhs[0] & 0x3f) == PEER_COMMAND && pdu->bhs[32] == READ_16;
}

uint64_t rig_lba(const struct peer_pdu *pdu)
{
	return get_be64(pdu->bhs + 34);
}

void rig_fill(uint8_t *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)((i * 31 + i / 251 + seed * 97) & 0xff);
}
