/* SPDX-License-Identifier: MIT
 *
 * The server's process.
 */
#include "tests/unit/iscsi/peer_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/iscsi/iscsi.h"
#include "tests/unit/iscsi/fake_scsi.h"

struct child {
	struct loop *loop;
	struct iscsi_server *server;
	struct iscsi_portal *portal[PEER_PORTALS];
	struct loop_watch watch;
	int answers;
};

/* One byte asks (enum peer_command), eight answer; the end of the pipe ends the server. */
static void child_command(void *arg, uint32_t ready)
{
	struct child *child = arg;
	struct err err = {0};
	int64_t answer = 0;
	char command;

	if (read(child->watch.fd, &command, 1) != 1) {
		loop_stop(child->loop);
		return;
	}
	switch (command) {
	case PEER_RESET_OTHER:
		answer = iscsi_portal_reset(child->portal[0], PEER_INITIATOR "-other");
		break;
	case PEER_RESET:
		answer = iscsi_portal_reset(child->portal[0], PEER_INITIATOR);
		break;
	case PEER_DOWN:
	case PEER_UP:
		answer = iscsi_portal_set_down(child->portal[0], command == PEER_DOWN, &err);
		break;
	default:
		for (int i = 0; i < 2; i++)
			answer += (int64_t)iscsi_portal_counters(child->portal[i])->reads;
		break;
	}
	if (write(child->answers, &answer, sizeof answer) != sizeof answer)
		loop_stop(child->loop);
}

static int child_run(int commands, int answers)
{
	struct buf_pool *pool = buf_pool_new(256 * 1024 * 1024);
	struct child child = {.answers = answers};
	struct scsi_target *target = fake_target_new(pool, PEER_TARGET_NAME);
	uint16_t port[PEER_PORTALS];
	struct err err = {0};

	if (loop_new_real(&child.loop) < 0)
		return 1;
	child.server = iscsi_server_new(child.loop, pool);
	iscsi_server_add_target(child.server, target);
	for (int i = 0; i < PEER_PORTALS; i++) {
		struct iscsi_portal_config config = {
		    .group_tag = 1, .target_port_group = 1, .redirects = i == 2};

		snprintf(config.address.host, sizeof config.address.host, "127.0.0.1");
		snprintf(config.address.text, sizeof config.address.text, "127.0.0.1:0");
		if (iscsi_server_listen(child.server, &config, &child.portal[i], &err) < 0)
			return 2;
		port[i] = iscsi_portal_config(child.portal[i])->address.port;
	}
	child.watch = (struct loop_watch){.fd = commands, .fn = child_command, .arg = &child};
	loop_watch_add(child.loop, &child.watch, EPOLLIN);
	if (write(answers, port, sizeof port) != sizeof port)
		return 3;
	loop_run(child.loop);
	loop_watch_del(child.loop, &child.watch);
	iscsi_server_free(child.server);
	fake_target_free(target);
	buf_pool_free(pool);
	loop_free(child.loop);
	return 0;
}

int peer_start(struct peer *peer)
{
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		return -1;
	peer->pid = fork();
	if (peer->pid < 0)
		return -1;
	if (peer->pid == 0) {
		close(to[1]);
		close(from[0]);
		exit(child_run(to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	peer->commands = to[1];
	peer->answers = from[0];
	return read(from[0], peer->port, sizeof peer->port) == sizeof peer->port ? 0 : -1;
}

int peer_stop(struct peer *peer)
{
	int status = -1;

	close(peer->commands);
	waitpid(peer->pid, &status, 0);
	close(peer->answers);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int64_t peer_ask(const struct peer *peer, enum peer_command command)
{
	char byte = (char)command;
	int64_t answer = -1;

	if (write(peer->commands, &byte, 1) != 1 ||
	    read(peer->answers, &answer, sizeof answer) != sizeof answer)
		return -1;
	return answer;
}
