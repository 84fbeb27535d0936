/* SPDX-License-Identifier: MIT
 *
 * Bugs other initiators had in moving data: bursts, R2Ts, pieces, residuals.
 */
#include "rig.h"

#include <sys/socket.h>

enum {
	BLOCKS = 512, /* 256 KiB */
	BYTES = BLOCKS * PEER_BLOCK_BYTES,
	FIRST_BURST = 65536,
	SEGMENT = 8192,
	ODD_BYTES = 65536,
	ODD_BLOCKS = ODD_BYTES / PEER_BLOCK_BYTES,
};

/* A target's side of one write. */
struct burst {
	uint8_t command[PEER_BHS_BYTES];
	uint32_t max_burst;
	uint32_t excess; /* asked for beyond what the command has */
	uint32_t ttt;	 /* of the current R2T */
	uint32_t r2t_sn, data_sn;
	uint32_t got, unsolicited, until;
	bool final_seen;
	uint8_t data[BYTES];
};

static void ask(struct burst *burst, struct peer *peer)
{
	uint8_t bhs[PEER_BHS_BYTES];
	uint32_t size = MIN_OF(burst->max_burst, BYTES - burst->got) + burst->excess;

	/* TTTs on both sides of the reserved value (31). */
	burst->ttt = burst->ttt == UINT32_MAX - 1 ? 0 : UINT32_MAX - 1;
	burst->until = burst->got + size;
	burst->data_sn = 0;
	peer_header(peer, burst->command, PEER_R2T, bhs);
	memcpy(bhs + 8, burst->command + 8, 8);
	put_be32(bhs + 20, burst->ttt);
	peer->stat_sn--; /* an R2T does not count */
	put_be32(bhs + 36, burst->r2t_sn++);
	put_be32(bhs + 40, burst->got);
	put_be32(bhs + 44, size);
	peer_send(peer, bhs, NULL, 0);
}

static void take(struct burst *burst, struct peer *peer, const struct peer_pdu *pdu)
{
	assert_true(pdu->size <= SEGMENT);
	assert_true(burst->got + pdu->size <= BYTES);
	memcpy(burst->data + burst->got, pdu->data, pdu->size);
	burst->got += pdu->size;
	if (!(pdu->bhs[1] & 0x80))
		return;
	burst->final_seen = true;
	if (burst->got < BYTES)
		ask(burst, peer);
	else
		peer_respond(peer, burst->command, 0, 0, 0, 0);
}

static bool on_write(struct peer *peer, const struct peer_pdu *pdu)
{
	struct burst *burst = peer->script_arg;

	if (rig_is_write(pdu)) {
		memcpy(burst->command, pdu->bhs, sizeof burst->command);
		burst->unsolicited = pdu->size;
		take(burst, peer, pdu);
		return true;
	}
	if ((pdu->bhs[0] & 0x3f) != PEER_DATA_OUT)
		return false;
	assert_int_equal(get_be32(pdu->bhs + 36), burst->data_sn++);
	assert_int_equal(get_be32(pdu->bhs + 40), burst->got);
	assert_memory_equal(pdu->bhs + 16, burst->command + 16, 4);
	if (burst->r2t_sn == 0) {
		assert_int_equal(get_be32(pdu->bhs + 20), UINT32_MAX);
		burst->unsolicited += pdu->size;
	} else {
		assert_int_equal(get_be32(pdu->bhs + 20), burst->ttt);
		assert_memory_equal(pdu->bhs + 8, burst->command + 8, 8);
		assert_true(burst->got + pdu->size <= burst->until);
	}
	take(burst, peer, pdu);
	return true;
}

#define BURST_KEYS                                                                            \
	"HeaderDigest=None\0DataDigest=None\0MaxBurstLength=262144\0FirstBurstLength=65536\0" \
	"MaxRecvDataSegmentLength=8192\0"

static void write_in_bursts(const char *keys, uint32_t max_burst, uint32_t want_unsolicited)
{
	static uint8_t out[BYTES];
	static struct burst burst;
	struct owner_io oio = {0};
	struct rig rig;

	burst = (struct burst){.max_burst = max_burst};
	rig_open(&rig);
	rig.peer.login_keys = keys;
	rig.peer.script = on_write;
	rig.peer.script_arg = &burst;
	rig_up(&rig);
	rig_fill(out, sizeof out, 37);
	owner_submit(&rig.owner, &oio, IO_WRITE, 0, BLOCKS, out);
	rig_expect(&rig, &rig.owner.ok, 1);
	assert_int_equal(burst.got, BYTES);
	assert_memory_equal(burst.data, out, BYTES);
	assert_int_equal(burst.unsolicited, want_unsolicited);
	rig_close(&rig);
}

/* Immediate data counts, too. */
static void test_prior_37_first_burst_is_not_exceeded(void **unused)
{
	write_in_bursts("InitialR2T=No\0ImmediateData=Yes\0" BURST_KEYS, 262144, FIRST_BURST);
	write_in_bursts("InitialR2T=No\0ImmediateData=No\0" BURST_KEYS, 262144, FIRST_BURST);
	write_in_bursts("InitialR2T=Yes\0ImmediateData=Yes\0" BURST_KEYS, 262144, SEGMENT);
	write_in_bursts("InitialR2T=Yes\0ImmediateData=No\0" BURST_KEYS, 262144, 0);
}

static void test_prior_39_small_r2ts(void **unused)
{
	write_in_bursts("InitialR2T=No\0ImmediateData=Yes\0" BURST_KEYS, 4096, FIRST_BURST);
	write_in_bursts("InitialR2T=Yes\0ImmediateData=No\0" BURST_KEYS, 4096 + 512, 0);
}

/* An R2T for more than the command has: nothing of the memory behind it may leave. */
static void test_prior_39_r2t_beyond_the_end(void **unused)
{
	static uint8_t out[BYTES];
	static struct burst burst;
	struct owner_io oio = {0};
	struct rig rig;

	burst = (struct burst){.max_burst = 262144, .excess = 4096};
	rig_open(&rig);
	rig.peer.login_keys = "InitialR2T=Yes\0ImmediateData=No\0" BURST_KEYS;
	rig.peer.script = on_write;
	rig.peer.script_arg = &burst;
	rig.config.io_timeout_ns = 500 * NS_PER_MS;
	rig_up(&rig);
	owner_submit(&rig.owner, &oio, IO_WRITE, 0, BLOCKS, out);
	rig_expect(&rig, &rig.owner.downs, 1);
	assert_int_equal(rig.owner.lost, 1);
	assert_int_equal(oio.ends, 1);
	assert_true(burst.got <= BYTES);
	rig_close(&rig);
}

static const uint32_t odd_sizes[] = {5792, 15880, 11536, 2848, 11536, 5744, 12200};

/* Data-In in the pieces of case 40. */
static bool odd_read(struct peer *peer, const struct peer_pdu *pdu)
{
	uint32_t at = 0;

	if (!rig_is_read(pdu))
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(odd_sizes); i++) {
		bool last = i + 1 == ARRAY_SIZE(odd_sizes);
		uint8_t bhs[PEER_BHS_BYTES];

		peer_header(peer, pdu->bhs, PEER_DATA_IN, bhs);
		bhs[1] = last ? 0x81 : 0;
		if (!last)
			peer->stat_sn--; /* there is no status in it */
		put_be32(bhs + 20, UINT32_MAX);
		put_be32(bhs + 36, i);
		put_be32(bhs + 40, at);
		peer_send(peer, bhs, peer->disk + at, odd_sizes[i]);
		at += odd_sizes[i];
	}
	assert_int_equal(at, ODD_BYTES);
	return true;
}

static void test_prior_40_unaligned_pieces_are_merged(void **unused)
{
	static uint8_t out[ODD_BYTES], in[ODD_BYTES];
	struct iovec pieces[ARRAY_SIZE(odd_sizes)];
	struct owner_io oio = {0};
	struct rig rig;
	uint32_t at = 0;

	rig_open(&rig);
	rig_up(&rig);
	rig_fill(out, sizeof out, 40);
	for (unsigned i = 0; i < ARRAY_SIZE(odd_sizes); i++) {
		pieces[i] = (struct iovec){out + at, odd_sizes[i]};
		at += odd_sizes[i];
	}
	owner_submit_iov(&rig.owner, &oio, IO_WRITE, 0, ODD_BLOCKS, pieces, ARRAY_SIZE(pieces));
	rig_expect(&rig, &rig.owner.ok, 1);
	assert_memory_equal(rig.peer.disk, out, ODD_BYTES);
	/* Back in such PDUs, into pieces that end elsewhere. */
	at = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(odd_sizes); i++) {
		uint32_t size = odd_sizes[ARRAY_SIZE(odd_sizes) - 1 - i];

		pieces[i] = (struct iovec){in + at, size};
		at += size;
	}
	rig.peer.script = odd_read;
	owner_submit_iov(&rig.owner, &oio, IO_READ, 0, ODD_BLOCKS, pieces, ARRAY_SIZE(pieces));
	rig_expect(&rig, &rig.owner.ok, 2);
	assert_memory_equal(in, out, ODD_BYTES);
	rig_close(&rig);
}

/* GOOD, but the command was for another length than the target thinks. */
struct residual {
	uint8_t flag; /* 0x04 overflow, 0x02 underflow */
	uint32_t count;
};

static bool with_residual(struct peer *peer, const struct peer_pdu *pdu)
{
	const struct residual *residual = peer->script_arg;
	uint8_t bhs[PEER_BHS_BYTES];
	bool read = rig_is_read(pdu);

	if (!read && !rig_is_write(pdu))
		return false;
	peer_header(peer, pdu->bhs, read ? PEER_DATA_IN : PEER_RESPONSE, bhs);
	bhs[1] = (uint8_t)((read ? 0x81 : 0x80) | residual->flag);
	if (read)
		put_be32(bhs + 20, UINT32_MAX);
	put_be32(bhs + 44, residual->count);
	peer_send(peer, bhs, peer->disk, read ? get_be32(pdu->bhs + 20) : 0);
	return true;
}

static void expect_residual(uint8_t flag, enum io_op op, uint32_t count, bool good)
{
	static uint8_t data[8 * PEER_BLOCK_BYTES];
	struct residual residual = {flag, count};
	struct owner_io oio = {0};
	struct rig rig;

	rig_open(&rig);
	rig.peer.script = with_residual;
	rig.peer.script_arg = &residual;
	rig_up(&rig);
	owner_submit(&rig.owner, &oio, op, 0, 8, data);
	rig_expect(&rig, &rig.owner.done, 1);
	assert_int_equal(oio.pio.result, good ? PATH_OK : PATH_SENSE);
	if (!good)
		assert_int_equal(oio.pio.sense_key, 0xb);
	assert_true(rig.owner.path->up);
	rig_close(&rig);
}

/* The target wanted more than the command's length says: blocks are of another size there. */
static void test_prior_43_overflow_is_no_success(void **unused)
{
	expect_residual(0x04, IO_READ, 4096, false);
	expect_residual(0x04, IO_WRITE, 4096, false);
}

static void test_prior_46_underflow_of_zero_is_none(void **unused)
{
	expect_residual(0x02, IO_WRITE, 0, true);
	expect_residual(0x00, IO_WRITE, 0, true);
	expect_residual(0x02, IO_WRITE, 512, false); /* a part was not taken */
	expect_residual(0x02, IO_READ, 512, false);
}

/* Everything a peer wants to send, let out in small pieces over time. */
enum { SLOW_READS = 64, SLOW_BLOCKS = 8, SLOW_BYTES = SLOW_BLOCKS * PEER_BLOCK_BYTES };

struct slow {
	struct peer *peer;
	struct loop_timer timer;
	uint8_t *bytes;
	size_t have, sent;
	unsigned reads;
};

static void let_out(void *arg)
{
	struct slow *slow = arg;
	size_t n = MIN_OF((size_t)1777, slow->have - slow->sent);
	ssize_t done = send(slow->peer->fd, slow->bytes + slow->sent, n, MSG_NOSIGNAL);

	if (done > 0)
		slow->sent += (size_t)done;
	if (slow->sent < slow->have)
		loop_timer_set(slow->peer->loop, &slow->timer,
			       loop_now_ns(slow->peer->loop) + 200000);
}

static bool slow_read(struct peer *peer, const struct peer_pdu *pdu)
{
	struct slow *slow = peer->script_arg;
	uint8_t *bhs = slow->bytes + slow->have;

	if (!rig_is_read(pdu))
		return false;
	peer_header(peer, pdu->bhs, PEER_DATA_IN, bhs);
	bhs[1] = 0x81;
	put_be32(bhs + 20, UINT32_MAX);
	put_be24(bhs + 5, SLOW_BYTES);
	memcpy(bhs + PEER_BHS_BYTES, peer->disk + rig_lba(pdu) * PEER_BLOCK_BYTES, SLOW_BYTES);
	slow->have += PEER_BHS_BYTES + SLOW_BYTES;
	if (++slow->reads == SLOW_READS)
		let_out(slow);
	return true;
}

static void test_prior_48_slow_reads_all_complete(void **unused)
{
	static uint8_t in[SLOW_READS][SLOW_BYTES];
	static struct owner_io oios[SLOW_READS];
	struct slow slow = {0};
	struct rig rig;

	rig_open(&rig);
	rig.config.max_in_flight = SLOW_READS;
	slow.bytes = calloc(SLOW_READS, PEER_BHS_BYTES + SLOW_BYTES);
	assert_non_null(slow.bytes);
	slow.peer = &rig.peer;
	loop_timer_init(&slow.timer, let_out, &slow);
	rig.peer.script = slow_read;
	rig.peer.script_arg = &slow;
	rig_up(&rig);
	rig_fill(rig.peer.disk, (size_t)PEER_BLOCKS * PEER_BLOCK_BYTES, 48);
	memset(oios, 0, sizeof oios);
	for (unsigned i = 0; i < SLOW_READS; i++)
		owner_submit(&rig.owner, &oios[i], IO_READ, i * SLOW_BLOCKS, SLOW_BLOCKS, in[i]);
	rig_expect(&rig, &rig.owner.ok, SLOW_READS);
	assert_memory_equal(in, rig.peer.disk, sizeof in);
	loop_timer_cancel(rig.loop, &slow.timer);
	rig_close(&rig);
	free(slow.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prior_37_first_burst_is_not_exceeded),
	    cmocka_unit_test(test_prior_39_small_r2ts),
	    cmocka_unit_test(test_prior_39_r2t_beyond_the_end),
	    cmocka_unit_test(test_prior_40_unaligned_pieces_are_merged),
	    cmocka_unit_test(test_prior_43_overflow_is_no_success),
	    cmocka_unit_test(test_prior_46_underflow_of_zero_is_none),
	    cmocka_unit_test(test_prior_48_slow_reads_all_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
