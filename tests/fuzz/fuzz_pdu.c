/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the PDU stream, from the first byte of a connection into the full feature phase.
 *
 * The input: how many bytes the target reads and writes at once (a byte each), which login the
 * peer makes first (a byte).  Login 0 is none: the rest goes in as it is, in pieces, and time
 * passes between them.  After any other login the rest is records: a byte of flags (below), a
 * header, data.  So a fuzzer that knows nothing of sequence numbers and digests gets deep.
 */
#include "tests/fuzz/peer.h"

enum record_flag {
	RECORD_NUMBER = 1 << 0,	   /* CmdSN is the next one, and the LUN a possible one */
	RECORD_SOLICITED = 1 << 1, /* Data-Out for the last R2T, tag of the last text response */
	RECORD_DATA = 1 << 2,	   /* data of the input; how much, two bytes say */
	RECORD_TIME = 1 << 3,	   /* time passes before it; how much, a byte says */
	RECORD_NO_DRAIN = 1 << 4,  /* the peer does not read */
	RECORD_OTHER = 1 << 5,	   /* over the other connection */
	RECORD_BROKEN = 1 << 6,	   /* digest */
	RECORD_CLOSE = 1 << 7,	   /* the connection closes, and is opened anew */
};

enum { PEERS = 2, RECORDS_MAX = 400, DATA_MAX = 16384, TICK_MS = 500 };
#define LONGEST_PASS_NS (100 * NS_PER_S)

#define KEYS(text)                \
	{                         \
		text, sizeof text \
	}
static const struct login {
	const char *keys;
	size_t size;
	bool discovery;
} logins[] = {
    KEYS("InitialR2T=No\0ImmediateData=Yes"),
    KEYS("HeaderDigest=CRC32C\0DataDigest=CRC32C\0InitialR2T=No"),
    KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=4096\0FirstBurstLength=4096\0"
	 "MaxRecvDataSegmentLength=512"),
    KEYS("HeaderDigest=CRC32C\0MaxBurstLength=512\0FirstBurstLength=512"),
    {"MaxRecvDataSegmentLength=512", sizeof "MaxRecvDataSegmentLength=512", true},
    KEYS("DataDigest=CRC32C\0MaxOutstandingR2T=8\0MaxBurstLength=1024\0FirstBurstLength=1024\0"
	 "InitialR2T=No"),
    KEYS("MaxConnections=4\0ErrorRecoveryLevel=2\0MaxRecvDataSegmentLength=516"),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void peer_log_in(struct fuzz_peer *peer, const struct login *login)
{
	static const char normal[] = "InitiatorName=iqn.2026-11.test.sanlab:fuzz\0AuthMethod=None\0"
				     "TargetName=" REAL_TARGET_NAME;
	static const char discovery[] = "InitiatorName=iqn.2026-11.test.sanlab:fuzz\0"
					"AuthMethod=None\0SessionType=Discovery";

	fuzz_peer_open(peer);
	if (login->discovery)
		fuzz_peer_login(peer, 0x81, discovery, sizeof discovery);
	else
		fuzz_peer_login(peer, 0x81, normal, sizeof normal);
	fuzz_peer_login(peer, 0x87, login->keys, login->size);
}

/* Any bytes, in pieces. */
static void stream(struct fuzz_peer *peer, struct fuzz_input *input)
{
	size_t piece = peer->read_split > 0 ? peer->read_split * 7 : SIZE_MAX;
	uint64_t pause_ns = peer->write_split * 10 * NS_PER_MS;

	fuzz_peer_open(peer);
	while (peer->conn && input->left > 0) {
		size_t size = MIN_OF(piece, input->left);

		fuzz_peer_feed(peer, input->at, size);
		input->at += size;
		input->left -= size;
		fuzz_peer_drain(peer);
		real_target_pass(peer->target, pause_ns);
	}
}

/* Sets what a fuzzer would hardly guess. */
static void header_fix(struct fuzz_peer *peer, unsigned flags, uint8_t *bhs, uint32_t *data_bytes)
{
	if (flags & RECORD_NUMBER) {
		put_be32(bhs + BHS_CMD_SN, peer->cmd_sn);
		if (!bhs_immediate(bhs) && bhs_opcode(bhs) != OP_DATA_OUT)
			peer->cmd_sn++;
		put_be32(bhs + BHS_EXP_STAT_SN, peer->stat_sn);
		if (bhs_opcode(bhs) == OP_SCSI_COMMAND || bhs_opcode(bhs) == OP_TASK_MANAGEMENT) {
			uint8_t lun = bhs[BHS_LUN + 1] & 3;

			memset(bhs + BHS_LUN, 0, 8);
			bhs[BHS_LUN + 1] = lun;
		}
	}
	if (!(flags & RECORD_SOLICITED))
		return;
	if (bhs_opcode(bhs) == OP_DATA_OUT && peer->has_r2t) {
		memcpy(bhs + BHS_ITT, peer->r2t + BHS_ITT, 4);
		memcpy(bhs + BHS_TTT, peer->r2t + BHS_TTT, 4);
		memcpy(bhs + BHS_OFFSET, peer->r2t + BHS_OFFSET, 4);
		*data_bytes = MIN_OF(get_be32(peer->r2t + BHS_DESIRED_BYTES), DATA_MAX);
	} else if (bhs_opcode(bhs) == OP_TEXT) {
		put_be32(bhs + BHS_TTT, peer->text_ttt);
	}
}

static void record(struct fuzz_peer *peer, struct fuzz_input *input, unsigned flags)
{
	static uint8_t payload[DATA_MAX];
	uint8_t bhs[BHS_BYTES];
	uint32_t data_bytes = 0;

	fuzz_bytes(input, bhs, sizeof bhs);
	header_fix(peer, flags, bhs, &data_bytes);
	if (flags & RECORD_DATA) {
		uint8_t length[2];

		fuzz_bytes(input, length, sizeof length);
		data_bytes = get_be16(length) % DATA_MAX;
		fuzz_bytes(input, payload, MIN_OF(data_bytes, input->left));
	} else if (!(flags & RECORD_SOLICITED) && bhs_data_bytes(bhs) > 0) {
		/* The lengths are the fuzzer's: raw, and what follows is whatever it is. */
		fuzz_peer_feed(peer, bhs, sizeof bhs);
		return;
	}
	fuzz_peer_send(peer, bhs, payload, data_bytes, flags & RECORD_BROKEN);
	if (!(flags & RECORD_NO_DRAIN))
		fuzz_peer_drain(peer);
}

static void records(struct fuzz_peer *peers, struct fuzz_input *input, const struct login *login)
{
	peer_log_in(&peers[0], login);
	for (unsigned i = 0; i < RECORDS_MAX && input->left > 0; i++) {
		unsigned flags = fuzz_byte(input);
		struct fuzz_peer *peer = &peers[flags & RECORD_OTHER ? 1 : 0];

		if (flags & RECORD_TIME)
			real_target_pass(
			    peer->target,
			    MIN_OF(fuzz_byte(input) * TICK_MS * NS_PER_MS, LONGEST_PASS_NS));
		if (flags & RECORD_CLOSE)
			fuzz_peer_close(peer);
		if (!peer->conn)
			peer_log_in(peer, login);
		record(peer, input, flags);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct real_target *target = fuzz_target_begin();
	struct fuzz_input input = {data, size};
	struct fuzz_peer peers[PEERS];
	unsigned login;

	for (unsigned i = 0; i < PEERS; i++)
		fuzz_peer_init(&peers[i], target, (uint8_t)(i + 1));
	peers[0].read_split = peers[1].read_split = fuzz_byte(&input);
	peers[0].write_split = peers[1].write_split = fuzz_byte(&input);
	login = fuzz_byte(&input) % (ARRAY_SIZE(logins) + 1);
	if (login == 0)
		stream(&peers[0], &input);
	else
		records(peers, &input, &logins[login - 1]);
	for (unsigned i = 0; i < PEERS; i++) {
		fuzz_peer_drain(&peers[i]);
		fuzz_peer_done(&peers[i]);
	}
	fuzz_target_end(target);
	return 0;
}
