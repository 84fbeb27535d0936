/* SPDX-License-Identifier: MIT
 *
 * The scripted target.
 */
#include "peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"

enum { BHS = PEER_BHS_BYTES, GOOD = 0, CHECK_CONDITION = 2 };

/* Least significant byte first (RFC 7143 13.1). */
static void put_digest(uint8_t *to, uint32_t crc)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (uint8_t)(crc >> 8 * i);
}

void peer_send(struct peer *peer, uint8_t *bhs, const void *data, uint32_t size)
{
	uint8_t pdu[BHS + 4 + 65536] = {0};
	uint32_t padded = (size + 3) & ~3U;
	uint32_t header = BHS + (peer->header_digest ? 4 : 0);
	uint32_t at = 0;

	assert(padded <= sizeof pdu - BHS - 4);
	put_be24(bhs + 5, size);
	memcpy(pdu, bhs, BHS);
	if (peer->header_digest)
		put_digest(pdu + BHS, crc32c(0, pdu, BHS));
	if (size)
		memcpy(pdu + header, data, size);
	while (at < header + padded) {
		ssize_t n = send(peer->fd, pdu + at, header + padded - at, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		at += (uint32_t)n;
	}
}

void peer_header(struct peer *peer, const uint8_t *request, uint8_t opcode, uint8_t *bhs)
{
	uint32_t cmd_sn = get_be32(request + 24);
	uint32_t next = cmd_sn + !(request[0] & 0x40);

	memset(bhs, 0, BHS);
	bhs[0] = opcode;
	bhs[1] = 0x80;
	memcpy(bhs + 16, request + 16, 4); /* ITT */
	put_be32(bhs + 24, peer->stat_sn++);
	put_be32(bhs + 28, next);
	if (!peer->window_closed)
		peer->max_cmd_sn = next + 63;
	put_be32(bhs + 32, peer->max_cmd_sn);
}

static uint32_t keys_size(const char *keys)
{
	const char *at = keys;

	while (*at)
		at += strlen(at) + 1;
	return (uint32_t)(at - keys);
}

static bool has_key(const char *keys, const char *key)
{
	for (; *keys; keys += strlen(keys) + 1)
		if (strcmp(keys, key) == 0)
			return true;
	return false;
}

static void on_login(struct peer *peer, const uint8_t *request)
{
	static const char keys[] = "HeaderDigest=None\0DataDigest=None\0InitialR2T=No\0"
				   "ImmediateData=Yes\0MaxBurstLength=262144\0"
				   "FirstBurstLength=262144\0MaxRecvDataSegmentLength=262144\0";
	const char *said = peer->login_keys ? peer->login_keys : keys;
	char redirect[128];
	uint8_t bhs[BHS];
	unsigned csg = request[1] >> 2 & 3, nsg = request[1] & 3;

	if (peer->close_at_login) {
		peer_drop(peer, false);
		return;
	}
	if (peer->garbage) {
		memset(bhs, 0x5a, sizeof bhs);
		(void)!send(peer->fd, bhs, sizeof bhs, MSG_NOSIGNAL);
		return;
	}
	peer_header(peer, request, PEER_LOGIN_RESPONSE, bhs);
	bhs[1] = request[1] & 0xcf;
	memcpy(bhs + 8, request + 8, 6);
	put_be16(bhs + 14, 1);
	put_be16(bhs + 36, peer->redirect_to ? 0x0101 : peer->login_status);
	if (peer->redirect_to) {
		int n = snprintf(redirect, sizeof redirect, "TargetAddress=%s", peer->redirect_to);

		peer_send(peer, bhs, redirect, (uint32_t)n + 1);
		return;
	}
	peer_send(peer, bhs, said, csg == 1 ? keys_size(said) : 0);
	if (request[1] & 0x80 && nsg == 3 && !peer->login_status) {
		memcpy(peer->isids[peer->logins % 16], request + 8, 6);
		peer->logins++;
		peer->header_digest = has_key(said, "HeaderDigest=CRC32C");
	}
}

void peer_respond(struct peer *peer, const uint8_t *request, uint8_t status, uint8_t key,
		  uint8_t asc, uint8_t ascq)
{
	uint8_t sense[20] = {0, 18, 0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq};
	uint8_t bhs[BHS];

	peer_header(peer, request, PEER_RESPONSE, bhs);
	bhs[3] = status;
	peer_send(peer, bhs, sense, status == CHECK_CONDITION ? sizeof sense : 0);
}

void peer_data_in(struct peer *peer, const uint8_t *request, const void *data, uint32_t size)
{
	uint32_t expected = get_be32(request + 20);
	uint32_t n = MIN_OF(size, expected);
	uint8_t bhs[BHS];

	peer_header(peer, request, PEER_DATA_IN, bhs);
	bhs[1] = 0x81;
	put_be32(bhs + 20, UINT32_MAX);
	if (n < expected) {
		bhs[1] |= 0x02;
		put_be32(bhs + 44, expected - n);
	}
	peer_send(peer, bhs, data, n);
}

static void on_inquiry(struct peer *peer, const uint8_t *request, const uint8_t *cdb)
{
	static const uint8_t names[28] = "PEER    SCRIPTED        1.0 ";
	uint8_t data[64] = {0};

	if (!(cdb[1] & 1)) {
		data[0] = peer->no_unit ? 0x7f : peer->no_access ? 0x20 : 0;
		data[2] = 6;
		data[4] = 31;
		memcpy(data + 8, names, sizeof names);
		peer_data_in(peer, request, data, 36);
	} else if (cdb[2] == 0x83) {
		data[1] = 0x83;
		data[3] = 20;
		memcpy(data + 4, (uint8_t[]){1, 3, 0, 16, 0x60, 9, 9, 9}, 8);
		peer_data_in(peer, request, data, 24);
	} else if (cdb[2] == 0xb0) {
		data[1] = 0xb0;
		data[3] = 60;
		put_be32(data + 8, 128);
		put_be32(data + 20, 1000);
		put_be32(data + 24, 1);
		peer_data_in(peer, request, data, 64);
	} else {
		peer_respond(peer, request, CHECK_CONDITION, 5, 0x24, 0);
	}
}

static void on_capacity(struct peer *peer, const uint8_t *request, bool sixteen)
{
	uint8_t data[32] = {0};

	if (sixteen && peer->no_capacity16) {
		peer_respond(peer, request, CHECK_CONDITION, 5, 0x20, 0);
		return;
	}
	put_be64(data, PEER_BLOCKS - 1);
	put_be32(data + 8, PEER_BLOCK_BYTES);
	data[14] = 0x80;
	if (sixteen)
		peer_data_in(peer, request, data, 32);
	else
		peer_data_in(peer, request, data + 4, 8);
}

static void on_io(struct peer *peer, const uint8_t *request, const uint8_t *cdb,
		  const uint8_t *data)
{
	bool ten = cdb[0] < 0x80;
	uint64_t lba = ten ? get_be32(cdb + 2) : get_be64(cdb + 2);
	uint32_t size = (ten ? get_be16(cdb + 7) : get_be32(cdb + 10)) * PEER_BLOCK_BYTES;
	bool read = cdb[0] == 0x28 || cdb[0] == 0x88;

	peer->reads += read;
	peer->writes += !read;
	if (peer->mute_io)
		return;
	if (peer->close_after && --peer->close_after == 0) {
		peer_drop(peer, true);
		return;
	}
	if (peer->io_status) {
		peer_respond(peer, request, peer->io_status, 3, 0x11, 0);
		return;
	}
	assert(lba * PEER_BLOCK_BYTES + size <= (uint64_t)PEER_BLOCKS * PEER_BLOCK_BYTES);
	if (read) {
		peer_data_in(peer, request, peer->disk + lba * PEER_BLOCK_BYTES,
			     peer->short_read ? size / 2 : size);
	} else {
		/* The tests write no more than goes as immediate data. */
		assert(get_be24(request + 5) == size);
		memcpy(peer->disk + lba * PEER_BLOCK_BYTES, data, size);
		peer_respond(peer, request, GOOD, 0, 0, 0);
	}
}

static void on_mode_sense(struct peer *peer, const uint8_t *request)
{
	uint8_t data[4] = {3, 0, 0, 0};

	data[2] = (uint8_t)((peer->write_protected ? 0x80 : 0) | (peer->no_dpofua ? 0 : 0x10));
	peer_data_in(peer, request, data, sizeof data);
}

static void on_unmap(struct peer *peer, const uint8_t *request, const uint8_t *data)
{
	peer->unmaps++;
	assert(get_be24(request + 5) == 24);
	assert(get_be16(data) == 22 && get_be16(data + 2) == 16);
	memset(peer->disk + get_be64(data + 8) * PEER_BLOCK_BYTES, 0,
	       (size_t)get_be32(data + 16) * PEER_BLOCK_BYTES);
	peer_respond(peer, request, GOOD, 0, 0, 0);
}

static void on_command(struct peer *peer, const uint8_t *request, const uint8_t *data)
{
	const uint8_t *cdb = request + 32;

	memcpy(peer->last_cdb, cdb, 16);
	memcpy(peer->last_lun, request + 8, 8);
	if (cdb[0] != 0x12 && peer->attentions) {
		peer->attentions--;
		peer_respond(peer, request, CHECK_CONDITION, 6, 0x29, 0);
		return;
	}
	if (cdb[0] != 0x12 && peer->no_access) {
		peer->refused++;
		peer_respond(peer, request, CHECK_CONDITION, 2, 0x04, peer->no_access);
		return;
	}
	switch (cdb[0]) {
	case 0x00:
		peer_respond(peer, request, GOOD, 0, 0, 0);
		break;
	case 0x12:
		on_inquiry(peer, request, cdb);
		break;
	case 0x1a:
		on_mode_sense(peer, request);
		break;
	case 0x25:
	case 0x9e:
		on_capacity(peer, request, cdb[0] == 0x9e);
		break;
	case 0x35:
	case 0x91:
		peer->flushes++;
		peer_respond(peer, request, GOOD, 0, 0, 0);
		break;
	case 0x42:
		on_unmap(peer, request, data);
		break;
	case 0x28:
	case 0x2a:
	case 0x88:
	case 0x8a:
		on_io(peer, request, cdb, data);
		break;
	default:
		peer_respond(peer, request, CHECK_CONDITION, 5, 0x20, 0);
		break;
	}
}

static void on_pdu(struct peer *peer, const uint8_t *request, const uint8_t *data)
{
	struct peer_pdu pdu = {request, data, get_be24(request + 5)};
	uint8_t bhs[BHS];
	unsigned opcode = request[0] & 0x3f;

	if (peer->script && peer->script(peer, &pdu))
		return;
	if (peer->silent || (peer->mute_all && opcode != PEER_LOGIN))
		return;
	switch (opcode) {
	case PEER_LOGIN:
		on_login(peer, request);
		break;
	case PEER_COMMAND:
		on_command(peer, request, data);
		break;
	case PEER_NOP_OUT:
		peer->nops++;
		peer_header(peer, request, PEER_NOP_IN, bhs);
		put_be32(bhs + 20, UINT32_MAX);
		peer_send(peer, bhs, NULL, 0);
		break;
	case PEER_LOGOUT:
		peer->logouts++;
		peer_header(peer, request, PEER_LOGOUT_RESPONSE, bhs);
		peer_send(peer, bhs, NULL, 0);
		break;
	default:
		break;
	}
}

static void on_input(void *arg, uint32_t ready)
{
	struct peer *peer = arg;
	ssize_t n = recv(peer->fd, peer->input + peer->have, PEER_INPUT_MAX - peer->have, 0);
	uint32_t at = 0;

	if (n <= 0) {
		peer_drop(peer, false);
		return;
	}
	peer->have += (uint32_t)n;
	while (peer->fd >= 0 && peer->have - at >= BHS) {
		const uint8_t *bhs = peer->input + at;
		uint32_t header = BHS + (peer->header_digest ? 4 : 0);
		uint32_t whole = header + ((get_be24(bhs + 5) + 3) & ~3U);
		uint8_t digest[4];

		if (peer->have - at < whole)
			break;
		put_digest(digest, crc32c(0, bhs, BHS));
		assert(!peer->header_digest || memcmp(digest, bhs + BHS, 4) == 0);
		on_pdu(peer, bhs, bhs + header);
		at += whole;
	}
	if (peer->fd >= 0) {
		memmove(peer->input, peer->input + at, peer->have - at);
		peer->have -= at;
	}
}

static void on_accept(void *arg, uint32_t ready)
{
	struct peer *peer = arg;
	struct sockaddr_storage from;
	socklen_t size = sizeof from;

	peer_drop(peer, false);
	peer->fd = accept4(peer->listen_fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
	assert(peer->fd >= 0);
	peer->connections++;
	peer->have = 0;
	peer->stat_sn = 1;
	peer->header_digest = false;
	peer->watch = (struct loop_watch){.fd = peer->fd, .fn = on_input, .arg = peer};
	assert(loop_watch_add(peer->loop, &peer->watch, EPOLLIN) == 0);
}

void peer_open(struct peer *peer, struct loop *loop)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;

	*peer = (struct peer){.loop = loop, .fd = -1};
	peer->input = malloc(PEER_INPUT_MAX);
	peer->disk = calloc(PEER_BLOCKS, PEER_BLOCK_BYTES);
	assert(peer->input && peer->disk);
	peer->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(peer->listen_fd >= 0);
	assert(bind(peer->listen_fd, (struct sockaddr *)&address, sizeof address) == 0);
	assert(listen(peer->listen_fd, 8) == 0);
	assert(getsockname(peer->listen_fd, (struct sockaddr *)&address, &size) == 0);
	snprintf(peer->portal, sizeof peer->portal, "127.0.0.1:%u", ntohs(address.sin_port));
	peer->listen_watch =
	    (struct loop_watch){.fd = peer->listen_fd, .fn = on_accept, .arg = peer};
	assert(loop_watch_add(loop, &peer->listen_watch, EPOLLIN) == 0);
}

void peer_drop(struct peer *peer, bool reset)
{
	struct linger linger = {.l_onoff = 1};

	if (peer->fd < 0)
		return;
	if (reset)
		setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	loop_watch_del(peer->loop, &peer->watch);
	close(peer->fd);
	peer->fd = -1;
}

void peer_stop_listening(struct peer *peer)
{
	if (peer->listen_fd < 0)
		return;
	loop_watch_del(peer->loop, &peer->listen_watch);
	close(peer->listen_fd);
	peer->listen_fd = -1;
}

void peer_close(struct peer *peer)
{
	peer_drop(peer, false);
	peer_stop_listening(peer);
	free(peer->input);
	free(peer->disk);
}
