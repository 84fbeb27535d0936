/* SPDX-License-Identifier: MIT
 *
 * See ese_serve.h.
 */
#include "tests/killed/ese_serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/run/hosts.h"

struct serve {
	struct loop *loop;
	struct lab *lab;
	struct hosts hosts;
	struct workload_device device;
	struct ese_load *load;
	struct loop_timer look; /* for SIGTERM */
	int fd;
	bool ending;
	int status;
};

static volatile sig_atomic_t asked_to_end;

static void on_term(int signal_number)
{
	asked_to_end = 1;
}

static void took_event(void *arg, const struct ese_load_event *event)
{
	struct serve *serve = arg;

	/* Shorter than PIPE_BUF: whole or not at all.  Nobody listens: nothing to work for. */
	if (write(serve->fd, event, sizeof *event) != sizeof *event)
		_exit(1);
	if (event->what == ESE_LOAD_OPENED && event->status == 0)
		ese_load_verify(serve->load);
	else if (event->what == ESE_LOAD_VERIFIED && event->status == 0)
		ese_load_run(serve->load);
	else if (event->what == ESE_LOAD_DETACHED || event->status < 0)
		if (event->what != ESE_LOAD_END)
			loop_stop(serve->loop);
}

static void look(void *arg)
{
	struct serve *serve = arg;

	if (asked_to_end && serve->load->running) {
		ese_load_detach(serve->load);
		return;
	}
	loop_timer_set(serve->loop, &serve->look, loop_now_ns(serve->loop) + 20 * NS_PER_MS);
}

static void connected(void *arg)
{
	struct serve *serve = arg;
	struct ese_load_config config = {
	    .loop = serve->loop,
	    .device = &serve->device,
	    .keys = SERVE_KEYS,
	    .lazy_flush_ns = SERVE_LAZY_FLUSH_NS,
	    .think_ns = 4 * NS_PER_MS,
	    .cache_pages = 96,
	    .checkpoint_depth_bytes = 512 * KIB,
	    .log_files = 6,
	    .initial_bytes = 4 * MIB,
	    .max_bytes = 24 * MIB,
	    .event = took_event,
	    .arg = serve,
	};

	serve->status = serve->hosts.status;
	if (serve->status < 0) {
		fprintf(stderr, "no volume: %s\n", serve->hosts.why);
		loop_stop(serve->loop);
		return;
	}
	config.seed = serve->lab->seed;
	serve->device = (struct workload_device){
	    .host = serve->hosts.devices[0].host,
	    .volume = serve->hosts.devices[0].volume,
	    .layer = mpio_layer(serve->hosts.devices[0].mpio),
	    .block_bytes = mpio_block_bytes(serve->hosts.devices[0].mpio),
	    .known_zero = true, /* a thin volume; what is written stays */
	};
	serve->load = ese_load_new(&config);
	if (!serve->load) {
		serve->status = -ENOMEM;
		loop_stop(serve->loop);
		return;
	}
	loop_timer_init(&serve->look, look, serve);
	look(serve);
	ese_load_open(serve->load);
}

int ese_serve(const char *lab_file, uint64_t seed, int fd)
{
	struct serve serve = {.fd = fd};
	struct err err = {0};
	int r;

	signal(SIGTERM, on_term);
	signal(SIGPIPE, SIG_IGN);
	r = lab_load(lab_file, NULL, 0, &serve.lab);
	if (r == 0)
		r = loop_new_real(&serve.loop);
	if (r == 0) {
		serve.lab->seed = seed;
		r = hosts_open(serve.loop, serve.lab, NULL, &serve.hosts, &err);
	}
	if (r == 0) {
		hosts_connect(&serve.hosts, connected, &serve);
		r = loop_run(serve.loop);
	}
	if (r < 0)
		err_print(&err);
	else
		r = serve.status;
	if (serve.load) {
		loop_timer_cancel(serve.loop, &serve.look);
		ese_load_free(serve.load);
	}
	hosts_close(&serve.hosts);
	loop_free(serve.loop);
	lab_free(serve.lab);
	return r < 0 ? 1 : 0;
}
