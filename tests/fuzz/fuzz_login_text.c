/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the text keys of the login and of text requests.
 *
 * The input: how many bytes the target reads at once (a byte), the TSIH and what the portal does
 * (a byte); then requests: flags (a byte), length of the text (two bytes), the text.  While the
 * login lasts a request is a Login Request with these flags, afterwards a Text Request.
 */
#include "tests/fuzz/peer.h"

enum { REQUESTS_MAX = 40, TEXT_MAX = 9000, REDIRECTS = 1, OLD_SESSION = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A session that a login with its TSIH, or its ISID, finds. */
static void session_begin(struct fuzz_peer *peer)
{
	static const char names[] = "InitiatorName=iqn.2026-11.test.sanlab:fuzz\0"
				    "TargetName=" REAL_TARGET_NAME;

	fuzz_peer_open(peer);
	fuzz_peer_login(peer, 0x87, names, sizeof names);
}

static void text_request(struct fuzz_peer *peer, unsigned flags, const char *text, uint32_t size)
{
	uint8_t bhs[BHS_BYTES] = {OP_TEXT | OP_IMMEDIATE, (uint8_t)(flags & 0xc0)};

	put_be32(bhs + BHS_ITT, 7);
	put_be32(bhs + BHS_TTT, flags & 1 ? peer->text_ttt : ISCSI_NO_TAG);
	put_be32(bhs + BHS_CMD_SN, peer->cmd_sn);
	fuzz_peer_send(peer, bhs, text, size, false);
	fuzz_peer_drain(peer);
}

static void login_request(struct fuzz_peer *peer, unsigned flags, uint16_t tsih, const char *text,
			  uint32_t size)
{
	uint8_t bhs[BHS_BYTES] = {OP_LOGIN | OP_IMMEDIATE, (uint8_t)flags};

	bhs[BHS_ISID] = 0x80;
	bhs[BHS_ISID + 5] = peer->isid_end;
	put_be16(bhs + BHS_TSIH, tsih);
	put_be32(bhs + BHS_CMD_SN, peer->cmd_sn);
	fuzz_peer_send(peer, bhs, text, size, false);
	fuzz_peer_drain(peer);
}

static void requests(struct fuzz_peer *peer, struct fuzz_input *input, uint16_t tsih)
{
	static char text[TEXT_MAX];

	for (unsigned i = 0; i < REQUESTS_MAX && input->left > 0 && peer->conn; i++) {
		unsigned flags = fuzz_byte(input);
		uint8_t length[2];
		uint32_t size;

		fuzz_bytes(input, length, sizeof length);
		size = get_be16(length) % TEXT_MAX;
		fuzz_bytes(input, text, size);
		if (peer->conn->state == CONN_FULL)
			text_request(peer, flags, text, size);
		else
			login_request(peer, flags, tsih, text, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct real_target *target = fuzz_target_begin();
	struct fuzz_input input = {data, size};
	struct fuzz_peer old, peer;
	struct iscsi_portal *member;
	uint8_t setup;

	fuzz_peer_init(&old, target, 1);
	fuzz_peer_init(&peer, target, 1);
	peer.read_split = fuzz_byte(&input);
	setup = fuzz_byte(&input);
	member = real_target_portal(target, "::1", 3261, 1, false);
	target->portal->config.redirects = setup & REDIRECTS && member;
	if (setup & OLD_SESSION)
		session_begin(&old);
	fuzz_peer_open(&peer);
	requests(&peer, &input, setup >> 4);
	real_target_pass(target, NS_PER_S);
	fuzz_peer_drain(&peer);
	fuzz_peer_done(&peer);
	fuzz_peer_done(&old);
	fuzz_target_end(target);
	return 0;
}
