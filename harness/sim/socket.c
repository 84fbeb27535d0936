/* SPDX-License-Identifier: MIT
 *
 * The target's end of a stream: a shell around a connection of the server, as target/iscsi/socket.c
 * is one around a socket.  Input that the connection cannot take yet waits; output leaves at the
 * end of a turn, as much as the send buffer holds.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/sim/stream.h"
#include "target/iscsi/conn.h"

struct sim_socket {
	struct sim_stream *stream;
	struct loop *loop;
	struct iscsi_conn *conn; /* NULL: closed */
	struct sim_segment_list input;
	struct loop_task task;
	unsigned busy; /* functions of this file on the stack: the last one out frees */
	bool blocked;  /* the send buffer is full */
	bool shut;     /* our side is done */
	bool reset, silent;
};

static void drop_input(struct sim_socket *socket)
{
	struct sim_segment *segment;

	while ((segment = STAILQ_FIRST(&socket->input))) {
		STAILQ_REMOVE_HEAD(&socket->input, entry);
		free(segment);
	}
}

static void socket_leave(struct sim_socket *socket)
{
	if (--socket->busy == 0 && !socket->conn)
		free(socket);
}

static void shell_wake(void *arg)
{
	struct sim_socket *socket = arg;

	if (!socket->silent)
		loop_task_queue(socket->loop, &socket->task);
}

static void shell_reset(void *arg)
{
	struct sim_socket *socket = arg;

	socket->reset = true;
}

static void shell_silence(void *arg)
{
	struct sim_socket *socket = arg;

	socket->silent = true;
	loop_task_cancel(socket->loop, &socket->task);
	drop_input(socket);
}

static void shell_closed(void *arg)
{
	struct sim_socket *socket = arg;

	socket->busy++;
	socket->conn = NULL;
	loop_task_cancel(socket->loop, &socket->task);
	/* Closing with unread input resets. */
	socket->reset |= socket->silent || !STAILQ_EMPTY(&socket->input);
	drop_input(socket);
	sim_stream_socket_closed(socket->stream, socket->reset);
	socket_leave(socket);
}

static const struct iscsi_shell_ops shell_ops = {shell_wake, shell_closed, shell_reset,
						 shell_silence};

/* Hands over what the connection has room for; how much that was. */
static size_t feed(struct sim_socket *socket)
{
	struct iovec iov[2];
	unsigned n = iscsi_conn_rx_iov(socket->conn, iov);
	size_t moved = 0;

	for (unsigned i = 0; i < n; i++) {
		size_t filled = 0;

		while (filled < iov[i].iov_len && !STAILQ_EMPTY(&socket->input)) {
			struct sim_segment *head = STAILQ_FIRST(&socket->input);
			size_t part = MIN_OF(iov[i].iov_len - filled, head->bytes - head->taken);

			memcpy((uint8_t *)iov[i].iov_base + filled, head->data + head->taken, part);
			filled += part;
			head->taken += (uint32_t)part;
			if (head->taken == head->bytes) {
				STAILQ_REMOVE_HEAD(&socket->input, entry);
				free(head);
			}
		}
		moved += filled;
		if (filled < iov[i].iov_len)
			break;
	}
	if (moved > 0)
		iscsi_conn_received(socket->conn, moved);
	return moved;
}

static void read_input(struct sim_socket *socket)
{
	if (socket->shut)
		drop_input(socket);
	while (socket->conn && !STAILQ_EMPTY(&socket->input) && feed(socket) > 0)
		continue;
}

static void write_output(struct sim_socket *socket)
{
	struct sim_stream *stream = socket->stream;
	const struct sim_unacked *unacked = &stream->unacked[SIM_TO_INITIATOR];
	struct iovec iov[TX_IOV_MAX];
	unsigned n;

	while (!socket->blocked && (n = iscsi_conn_tx_iov(socket->conn, iov, TX_IOV_MAX)) > 0) {
		size_t bytes = MIN_OF(iov_bytes(iov, n), (uint64_t)SIM_SEGMENT_BYTES);
		struct sim_segment *segment =
		    sim_segment_new(stream, SIM_DATA, SIM_TO_INITIATOR, (uint32_t)bytes);

		iov_to_mem(iov, n, 0, segment->data, bytes);
		sim_stream_send(segment);
		iscsi_conn_sent(socket->conn, bytes);
		socket->blocked = unacked->bytes >= SIM_SEND_BUFFER_BYTES;
	}
}

/* The end of a turn: what it has gathered goes out, and what had to wait for that goes on. */
static void socket_flush(void *arg)
{
	struct sim_socket *socket = arg;

	socket->busy++;
	for (;;) {
		write_output(socket);
		if (socket->blocked || iscsi_conn_paused(socket->conn))
			break;
		if (iscsi_conn_has_input(socket->conn))
			iscsi_conn_received(socket->conn, 0);
		if (socket->conn)
			read_input(socket);
		if (!socket->conn || iscsi_tx_empty(&socket->conn->tx))
			break;
	}
	if (socket->conn && !socket->shut && iscsi_conn_finished(socket->conn)) {
		socket->shut = true;
		sim_stream_control(socket->stream, SIM_FIN, SIM_TO_INITIATOR);
	}
	socket_leave(socket);
}

struct sim_socket *sim_socket_open(struct sim_stream *stream, struct iscsi_portal *portal)
{
	struct sim_socket *socket = calloc(1, sizeof *socket);

	if (!socket)
		return NULL;
	socket->stream = stream;
	socket->loop = stream->link->loop;
	STAILQ_INIT(&socket->input);
	loop_task_init(&socket->task, socket_flush, socket);
	socket->conn = iscsi_conn_new(portal, "127.0.0.1", &shell_ops, socket);
	if (!socket->conn) {
		free(socket);
		return NULL;
	}
	iscsi_conn_set_peer(socket->conn, "127.0.0.1");
	return socket;
}

void sim_socket_received(struct sim_socket *socket, struct sim_segment *segment)
{
	if (socket->silent) {
		free(segment);
		return;
	}
	socket->busy++;
	STAILQ_INSERT_TAIL(&socket->input, segment, entry);
	read_input(socket);
	if (socket->conn)
		loop_task_queue(socket->loop, &socket->task);
	socket_leave(socket);
}

void sim_socket_reset(struct sim_socket *socket)
{
	if (socket->silent) /* nobody is there to read the reset */
		return;
	socket->busy++;
	drop_input(socket);
	iscsi_conn_kill(socket->conn);
	socket_leave(socket);
}

void sim_socket_acked(struct sim_socket *socket)
{
	if (!socket->blocked || socket->silent ||
	    socket->stream->unacked[SIM_TO_INITIATOR].bytes >= SIM_SEND_BUFFER_BYTES / 2)
		return;
	socket->blocked = false;
	loop_task_queue(socket->loop, &socket->task);
}
