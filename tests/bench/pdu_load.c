/* SPDX-License-Identifier: MIT
 *
 * Random reads by a raw-PDU initiator over one connection, with or without digests: libiscsi has no
 * data digest, so nothing else can measure what digests cost the target.  Both digests of every PDU
 * are checked.  Prints one line of JSON.  Not a test: scripts/bench-target runs it.
 *
 * usage: pdu_load HOST PORT TARGET none|crc32c SECONDS [DEPTH]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/loop.h"
#include "base/rng.h"
#include "target/iscsi/pdu.h"

enum { READ_BYTES = 4096, ROOM_BYTES = 1 << 20, DEPTH_MAX = 512, SETTLE_TRIES = 8 };

struct load {
	int fd;
	bool digests;	/* from full feature phase on */
	bool negotiate; /* ask for them */
	uint32_t cmd_sn, exp_stat_sn, itt;
	uint32_t blocks, block_bytes;
	uint64_t ios;
	struct rng rng;
	uint8_t in[ROOM_BYTES], out[64 * 1024];
	size_t have, used, out_bytes;
};

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("pdu_load: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void flush_out(struct load *load)
{
	for (size_t done = 0; done < load->out_bytes;) {
		ssize_t n = write(load->fd, load->out + done, load->out_bytes - done);

		if (n < 0 && errno != EINTR)
			die("write: %s", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	load->out_bytes = 0;
}

static void put(struct load *load, const void *bytes, size_t size)
{
	if (size == 0)
		return;
	if (load->out_bytes + size > sizeof load->out)
		flush_out(load);
	memcpy(load->out + load->out_bytes, bytes, size);
	load->out_bytes += size;
}

/* Queues a PDU; DATA is text of the login, which has no digests. */
static void send_pdu(struct load *load, uint8_t *bhs, const void *data, uint32_t data_bytes)
{
	static const uint8_t zeros[4];
	uint8_t digest[4];

	put_be24(bhs + BHS_DATA_BYTES, data_bytes);
	/* All requests of a login have one tag. */
	put_be32(bhs + BHS_ITT, (bhs[0] & OP_MASK) == OP_LOGIN ? 0 : ++load->itt);
	put_be32(bhs + BHS_EXP_STAT_SN, load->exp_stat_sn);
	put(load, bhs, BHS_BYTES);
	if (load->digests) {
		put_digest(digest, crc32c(0, bhs, BHS_BYTES));
		put(load, digest, sizeof digest);
	}
	put(load, data, data_bytes);
	put(load, zeros, pdu_pad_bytes(data_bytes));
}

/* Makes sure that SIZE bytes of input are there. */
static const uint8_t *need(struct load *load, size_t size)
{
	if (load->used + size > sizeof load->in) {
		memmove(load->in, load->in + load->used, load->have - load->used);
		load->have -= load->used;
		load->used = 0;
	}
	while (load->have - load->used < size) {
		ssize_t n = read(load->fd, load->in + load->have, sizeof load->in - load->have);

		if (n == 0)
			die("the target closed the connection");
		if (n < 0 && errno != EINTR)
			die("read: %s", strerror(errno));
		load->have += n > 0 ? (size_t)n : 0;
	}
	return load->in + load->used;
}

/* The next PDU, digests checked; *RET_DATA points into the input. */
static const uint8_t *receive(struct load *load, const uint8_t **ret_data, uint32_t *ret_bytes)
{
	uint32_t head = BHS_BYTES + (load->digests ? 4 : 0);
	const uint8_t *bhs = need(load, head);
	uint32_t bytes = get_be24(bhs + BHS_DATA_BYTES), padded = bytes + pdu_pad_bytes(bytes);
	uint32_t tail = load->digests && bytes ? 4 : 0;

	bhs = need(load, head + padded + tail);
	if (load->digests && get_digest(bhs + BHS_BYTES) != crc32c(0, bhs, BHS_BYTES))
		die("header digest");
	if (tail && get_digest(bhs + head + padded) != crc32c(0, bhs + head, padded))
		die("data digest");
	load->used += head + padded + tail;
	if (load->used == load->have)
		load->used = load->have = 0;
	load->exp_stat_sn = get_be32(bhs + BHS_STAT_SN) + 1;
	*ret_data = bhs + head;
	*ret_bytes = bytes;
	return bhs;
}

static void login_step(struct load *load, unsigned flags, const char *keys, uint32_t size)
{
	uint8_t bhs[BHS_BYTES] = {OP_LOGIN | OP_IMMEDIATE, (uint8_t)flags};
	const uint8_t *answer, *data;
	uint32_t bytes;

	bhs[BHS_ISID] = 0x80;
	put_be32(bhs + BHS_CMD_SN, load->cmd_sn);
	send_pdu(load, bhs, keys, size);
	flush_out(load);
	answer = receive(load, &data, &bytes);
	if ((answer[0] & OP_MASK) != OP_LOGIN_RESPONSE || answer[BHS_STATUS_CLASS] != 0)
		die("login refused with status %02x%02x", answer[BHS_STATUS_CLASS],
		    answer[BHS_STATUS_DETAIL]);
}

static void login(struct load *load, const char *target)
{
	char keys[1024];
	const char *digest = load->negotiate ? "CRC32C" : "None";
	int size = snprintf(keys, sizeof keys,
			    "InitiatorName=iqn.2026-11.test.sanlab:pdu-load%cTargetName=%s%c"
			    "SessionType=Normal%cAuthMethod=None%c",
			    0, target, 0, 0, 0);

	login_step(load, FLAG_TRANSIT | 0 << 2 | 1, keys, (uint32_t)size);
	size = snprintf(keys, sizeof keys,
			"HeaderDigest=%s%cDataDigest=%s%cMaxRecvDataSegmentLength=262144%c"
			"InitialR2T=No%cImmediateData=Yes%c",
			digest, 0, digest, 0, 0, 0, 0);
	login_step(load, FLAG_TRANSIT | 1 << 2 | 3, keys, (uint32_t)size);
	load->digests = load->negotiate;
}

static void command(struct load *load, const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl)
{
	uint8_t bhs[BHS_BYTES] = {OP_SCSI_COMMAND, FLAG_FINAL | (edtl ? FLAG_READ : 0) | 1};

	put_be32(bhs + BHS_EDTL, edtl);
	put_be32(bhs + BHS_CMD_SN, load->cmd_sn++);
	memcpy(bhs + BHS_CDB, cdb, cdb_bytes);
	send_pdu(load, bhs, NULL, 0);
}

/* Clears unit attentions, then asks for the size. */
static void settle(struct load *load)
{
	static const uint8_t ready[6], capacity[10] = {0x25};
	const uint8_t *bhs, *data;
	uint32_t bytes;
	int tries = 0;

	do {
		command(load, ready, sizeof ready, 0);
		flush_out(load);
		bhs = receive(load, &data, &bytes);
	} while (bhs[BHS_STATUS] != 0 && ++tries < SETTLE_TRIES);
	command(load, capacity, sizeof capacity, 8);
	flush_out(load);
	bhs = receive(load, &data, &bytes);
	if ((bhs[0] & OP_MASK) != OP_DATA_IN || bytes < 8)
		die("READ CAPACITY failed");
	load->blocks = get_be32(data);
	load->block_bytes = get_be32(data + 4);
	if (load->block_bytes == 0 || load->blocks < READ_BYTES / load->block_bytes)
		die("the volume is too small");
}

static void read_send(struct load *load)
{
	uint8_t cdb[10] = {0x28};
	uint32_t blocks = READ_BYTES / load->block_bytes;

	put_be32(cdb + 2, (uint32_t)rng_below(&load->rng, load->blocks / blocks) * blocks);
	put_be16(cdb + 7, (uint16_t)blocks);
	command(load, cdb, sizeof cdb, READ_BYTES);
}

static void run(struct load *load, const struct loop *loop, unsigned depth, uint64_t length_ns)
{
	uint64_t end_ns = loop_now_ns(loop) + length_ns;
	const uint8_t *bhs, *data;
	uint32_t bytes;

	for (unsigned i = 0; i < depth; i++)
		read_send(load);
	while (loop_now_ns(loop) < end_ns) {
		/* Answers as long as there are whole ones, then one write for their successors. */
		flush_out(load);
		do {
			bhs = receive(load, &data, &bytes);
			if ((bhs[0] & OP_MASK) != OP_DATA_IN || !(bhs[BHS_FLAGS] & FLAG_STATUS) ||
			    bytes != READ_BYTES)
				die("a read was answered by opcode %02x", bhs[0]);
			load->ios++;
			read_send(load);
		} while (load->have - load->used >= BHS_BYTES + READ_BYTES + 8);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct load *load = calloc(1, sizeof *load);
	struct loop *loop;
	int one = 1;

	if (argc < 6 || !load)
		die("usage: pdu_load HOST PORT TARGET none|crc32c SECONDS [DEPTH]");
	uint64_t seconds = strtoul(argv[5], NULL, 10);
	unsigned depth = argc > 6 ? (unsigned)strtoul(argv[6], NULL, 10) : 32;
	if (!seconds || !depth || depth > DEPTH_MAX)
		die("seconds and depth (at most %d) are numbers above 0", DEPTH_MAX);
	load->negotiate = strcmp(argv[4], "crc32c") == 0;
	load->cmd_sn = 1;
	rng_init(&load->rng, 1, 0);
	address.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
	load->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (load->fd < 0 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1 ||
	    connect(load->fd, (struct sockaddr *)&address, sizeof address) || loop_new_real(&loop))
		die("cannot connect to %s:%s: %s", argv[1], argv[2], strerror(errno));
	setsockopt(load->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	login(load, argv[3]);
	settle(load);
	uint64_t begin_ns = loop_now_ns(loop);
	run(load, loop, depth, seconds * NS_PER_S);
	printf("{\"digests\": \"%s\", \"queue_depth\": %u, \"ios\": %llu, \"iops\": %.0f}\n",
	       argv[4], depth, (unsigned long long)load->ios,
	       (double)load->ios * 1e9 / (double)(loop_now_ns(loop) - begin_ns));
	close(load->fd);
	loop_free(loop);
	free(load);
	return 0;
}
