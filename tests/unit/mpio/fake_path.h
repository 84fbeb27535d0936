/* SPDX-License-Identifier: MIT
 *
 * A scripted kind of path for MPIO's tests: commands take a set time on the virtual loop, answers
 * can be prescribed, and the path can be killed with I/O in flight.
 */
#ifndef SANLAB_TESTS_FAKE_PATH_H
#define SANLAB_TESTS_FAKE_PATH_H

#include <sys/queue.h>

#include "base/rng.h"
#include "initiator/path/path.h"

enum { FAKE_BLOCK_BYTES = 512, FAKE_SCRIPT_MAX = 256 };

struct fake_disk {
	uint8_t *data;
	uint64_t blocks;
};

struct fake_answer {
	enum path_result result;
	uint8_t scsi_status, key, asc, ascq;
};

struct fake_cmd {
	struct fake_path *fake;
	struct path_io *pio;
	struct loop_timer timer;
	TAILQ_ENTRY(fake_cmd) link;
};

TAILQ_HEAD(fake_cmd_list, fake_cmd);

struct fake_path {
	struct path path; /* first */
	struct fake_disk *disk;
	struct rng rng;
	uint64_t service_ns, service_spread_ns, connect_ns;
	bool refuse_login;			    /* the login fails, by an event */
	int connect_error;			    /* path_connect itself fails */
	struct path_identity identity;		    /* what the next login finds */
	struct fake_answer script[FAKE_SCRIPT_MAX]; /* answers of the next commands, in order */
	unsigned script_at, script_count;
	double trouble; /* chance of a random UA, BUSY or abort as answer */
	unsigned logins, submitted, lost;
	bool hold; /* commands are never answered */

	void (*on_submit)(void *arg, struct fake_path *fake, const struct path_io *pio);
	void (*on_lost)(void *arg, struct fake_path *fake, const struct path_io *pio);
	void *arg;

	struct loop_timer connect_timer;
	struct fake_cmd_list cmds;
};

struct fake_path *fake_path_new(struct loop *loop, struct fake_disk *disk, const char *portal,
				uint64_t seed);
void fake_path_script(struct fake_path *fake, struct fake_answer answer);
/* The connection breaks: what is in flight was executed or not, as chance has it. */
void fake_path_kill(struct fake_path *fake, const char *why);

#endif
