/* SPDX-License-Identifier: MIT
 *
 * Peers that do a target harm, against a target on a socket.
 *
 *   hostile_peers crowd ADDRESS PORT IQN COUNT LOGINS
 *     COUNT connections that send nothing, half a header or garbage (a third each) and stay; those
 *     the target closes come back.  Meanwhile a good peer logs in LOGINS times.  Prints how
 *     long its logins took; fails when one does not succeed within LOGIN_DEADLINE_MS.
 *   hostile_peers idle ADDRESS PORT IQN COUNT
 *     COUNT sessions that log in and then say nothing.  Prints "ready" and holds them until its
 *     standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "target/iscsi/pdu.h"

enum {
	PEERS_MAX = 65535,
	TEXT_BYTES = 512,
	LOGIN_DEADLINE_MS = 10000,
	/* While it waits, the good peer lets the crowd go on so often. */
	CROWD_MS = 5,
};

static struct loop *the_clock;
static struct sockaddr_in target_address;
static const char *target_name;

static struct crowd_peer {
	int fd;
	bool greeted;
} crowd[PEERS_MAX];
static unsigned returns; /* connections opened anew */

static void die(const char *what)
{
	fprintf(stderr, "hostile_peers: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ms(void)
{
	return loop_now_ns(the_clock) / NS_PER_MS;
}

static int connect_begin(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	if (connect(fd, (struct sockaddr *)&target_address, sizeof target_address) < 0 &&
	    errno != EINPROGRESS)
		die("connect");
	return fd;
}

/* ---- the good peer ---- */

/* A login in one PDU; its length with padding. */
static size_t login_make(uint8_t *pdu, unsigned isid)
{
	char text[TEXT_BYTES];
	int n = snprintf(
	    text, sizeof text,
	    "InitiatorName=iqn.2026-11.test.sanlab:good%cTargetName=%s%cSessionType=Normal", 0,
	    target_name, 0);
	uint32_t bytes = (uint32_t)n + 1;

	memset(pdu, 0, BHS_BYTES + bytes + 4);
	pdu[BHS_OPCODE] = OP_LOGIN | OP_IMMEDIATE;
	pdu[BHS_FLAGS] = FLAG_TRANSIT | STAGE_OPERATIONAL << 2 | STAGE_FULL_FEATURE;
	put_be24(pdu + BHS_DATA_BYTES, bytes);
	pdu[BHS_ISID] = 0x80;
	put_be32(pdu + BHS_ISID + 2, isid);
	put_be32(pdu + BHS_CMD_SN, 1);
	memcpy(pdu + BHS_BYTES, text, bytes);
	return BHS_BYTES + bytes + pdu_pad_bytes(bytes);
}

static void crowd_go_on(unsigned count);

/* Waits until FD is ready for EVENTS; the crowd goes on meanwhile. */
static bool good_wait(int fd, short events, uint64_t deadline_ms, unsigned crowd_count)
{
	struct pollfd entry = {.fd = fd, .events = events};

	while (now_ms() < deadline_ms) {
		int r = poll(&entry, 1, CROWD_MS);

		if (r > 0)
			return true;
		if (r < 0 && errno != EINTR)
			die("poll");
		crowd_go_on(crowd_count);
	}
	return false;
}

/* Connects and logs in; the descriptor, or -1 with what went wrong. */
static int good_login(unsigned isid, unsigned crowd_count, const char **ret_why)
{
	uint64_t deadline_ms = now_ms() + LOGIN_DEADLINE_MS;
	uint8_t pdu[BHS_BYTES + TEXT_BYTES], answer[BHS_BYTES];
	size_t size = login_make(pdu, isid), got = 0;
	int fd = connect_begin();

	*ret_why = "no answer in time";
	if (!good_wait(fd, POLLOUT, deadline_ms, crowd_count) ||
	    write(fd, pdu, size) != (ssize_t)size) {
		close(fd);
		*ret_why = "no connection";
		return -1;
	}
	while (got < sizeof answer && good_wait(fd, POLLIN, deadline_ms, crowd_count)) {
		ssize_t n = read(fd, answer + got, sizeof answer - got);

		if (n > 0) {
			got += (size_t)n;
		} else if (n == 0 || errno != EAGAIN) {
			*ret_why = "the target closed";
			break;
		}
	}
	if (got == sizeof answer && get_be16(answer + BHS_STATUS_CLASS) == LOGIN_SUCCESS)
		return fd;
	if (got == sizeof answer)
		*ret_why = "refused";
	close(fd);
	return -1;
}

/* ---- the crowd ---- */

static void crowd_greet(struct crowd_peer *peer, unsigned index)
{
	uint8_t bytes[200];
	size_t size = 0;

	switch (index % 3) {
	case 0:
		break;
	case 1: /* half a header that looks like a login's */
		memset(bytes, 0, sizeof bytes);
		bytes[0] = OP_LOGIN | OP_IMMEDIATE;
		size = BHS_BYTES / 2;
		break;
	default:
		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (uint8_t)(index * 31 + i * 7 + (i ^ index) / 3);
		size = 1 + index % sizeof bytes;
		break;
	}
	/* A peer like this does not care whether it works. */
	if (size > 0 && send(peer->fd, bytes, size, MSG_NOSIGNAL) < 0 && errno == EAGAIN)
		return;
	peer->greeted = true;
}

static void crowd_go_on(unsigned count)
{
	static struct pollfd entries[PEERS_MAX];

	for (unsigned i = 0; i < count; i++)
		entries[i] = (struct pollfd){
		    .fd = crowd[i].fd,
		    .events = (short)(POLLIN | POLLRDHUP | (crowd[i].greeted ? 0 : POLLOUT))};
	if (poll(entries, count, 0) <= 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		if (entries[i].revents & (POLLERR | POLLHUP | POLLRDHUP | POLLIN)) {
			close(crowd[i].fd);
			crowd[i] = (struct crowd_peer){.fd = connect_begin()};
			returns++;
		} else if (entries[i].revents & POLLOUT) {
			crowd_greet(&crowd[i], i);
		}
	}
}

static int compare_times(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1e6;
}

static int run_crowd(unsigned count, unsigned logins)
{
	static uint64_t times_ns[PEERS_MAX];

	for (unsigned i = 0; i < count; i++)
		crowd[i] = (struct crowd_peer){.fd = connect_begin()};
	for (unsigned i = 0; i < logins; i++) {
		uint64_t begin_ns = loop_now_ns(the_clock);
		const char *why;
		int fd;

		crowd_go_on(count);
		fd = good_login(i + 1, count, &why);
		times_ns[i] = loop_now_ns(the_clock) - begin_ns;
		if (fd < 0) {
			printf("login %u of %u failed among %u hostile peers: %s\n", i + 1, logins,
			       count, why);
			return 1;
		}
		close(fd);
	}
	qsort(times_ns, logins, sizeof times_ns[0], compare_times);
	printf("%u hostile peers (%u came back), %u good logins: median %.1f ms, longest %.1f ms\n",
	       count, returns, logins, milliseconds(times_ns[logins / 2]),
	       milliseconds(times_ns[logins - 1]));
	return 0;
}

static int run_idle(unsigned count)
{
	char scrap[64];

	for (unsigned i = 0; i < count; i++) {
		const char *why;

		crowd[i].fd = good_login(i + 1, 0, &why);
		if (crowd[i].fd < 0) {
			printf("session %u of %u: %s\n", i + 1, count, why);
			return 1;
		}
	}
	printf("ready: %u sessions\n", count);
	fflush(stdout);
	while (read(STDIN_FILENO, scrap, sizeof scrap) > 0)
		continue;
	return 0;
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || value == 0 || value > PEERS_MAX) {
		fprintf(stderr, "hostile_peers: %s: a number from 1 to %d\n", text, PEERS_MAX);
		exit(2);
	}
	return (unsigned)value;
}

int main(int argc, char **argv)
{
	struct rlimit files;

	if (argc < 6 || (strcmp(argv[1], "idle") != 0 && argc < 7) ||
	    loop_new_real(&the_clock) < 0) {
		fprintf(stderr,
			"usage: hostile_peers crowd|idle ADDRESS PORT IQN COUNT [LOGINS]\n");
		return 2;
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	target_address.sin_family = AF_INET;
	target_address.sin_port = htons((uint16_t)number(argv[3]));
	if (inet_pton(AF_INET, argv[2], &target_address.sin_addr) != 1)
		die(argv[2]);
	target_name = argv[4];
	if (strcmp(argv[1], "idle") == 0)
		return run_idle(number(argv[5]));
	return run_crowd(number(argv[5]), number(argv[6]));
}
