/* SPDX-License-Identifier: MIT
 *
 * MPIO asks our target where the blocks are and sends each request to the member that has it: two
 * members, two paths to each, everything but the sockets as in `sanlab run`, on the virtual loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/lab/lab.h"
#include "harness/sim/sim.h"
#include "initiator/mpio/mpio.h"
#include "target/iscsi/conn.h"
#include "target/target.h"

enum { PATHS = 4, BLOCK = 4096, DEPTH = 8 };

static const char lab_text[] =
    "name: slices\n"
    "group:\n"
    "  portal: 127.0.0.1:3260\n"
    "  pools:\n"
    "    - name: default\n"
    "      members:\n"
    "        - {name: m1, drives: {count: 2, size: 512MiB}, raid: raid0, timing: none, portals: "
    "[127.0.0.1:3261, 127.0.0.1:3262]}\n"
    "        - {name: m2, drives: {count: 2, size: 512MiB}, raid: raid0, timing: none, portals: "
    "[127.0.0.1:3263, 127.0.0.1:3264]}\n"
    "  volumes:\n"
    "    - {name: db1, size: 256MiB, thin: true}\n"
    "hosts:\n"
    "  - {name: h1, volumes: [db1], mpio: {slice-refresh: 1s}}\n"
    "workload: {type: exchange, mailboxes: 1}\n";

struct world {
	struct lab *lab;
	struct loop *loop;
	struct target *target;
	struct volume *volume;
	struct sim_link *links[PATHS];
	struct path *paths[PATHS];
	struct mpio *mpio;
	struct rng rng;
	struct io io;
	struct iovec iov;
	uint8_t data[BLOCK];
	unsigned in_flight;
	/* requests on paths that lead to the block's member, and on others */
	unsigned direct, hops, unmapped;
};

static struct world *world; /* the one whose paths count */
static const struct path_ops *real_ops;
static struct path_ops counting_ops;

static unsigned index_of(const struct path *path)
{
	unsigned i = 0;

	while (world->paths[i] != path)
		i++;
	return i;
}

static void count_submit(struct path *path, struct path_io *pio)
{
	const struct member *member;
	uint64_t run_bytes;

	volume_slice(world->volume, pio->lba * path->identity.block_bytes, &member, &run_bytes);
	if (!member)
		world->unmapped++;
	else if ((strcmp(member_name(member), "m2") == 0) == (index_of(path) >= 2))
		world->direct++;
	else
		world->hops++;
	real_ops->submit(path, pio);
}

static void ready(void *arg, int status, const char *why)
{
	assert_int_equal(status, 0);
}

static void add_path(struct world *w, unsigned at)
{
	static const char *const portals[PATHS] = {"127.0.0.1:3261", "127.0.0.1:3262",
						   "127.0.0.1:3263", "127.0.0.1:3264"};
	struct sim_link_config link = {.delay_ns = 100 * NS_PER_US, .seed = at};
	struct path_config config = {.portal = portals[at],
				     .target = "iqn.2026-11.test.sanlab:slices:db1",
				     .initiator_name = "iqn.2026-11.test.sanlab:host:h1",
				     .isid_qualifier = at + 1};
	struct iscsi_server *server = target_server(w->target);
	struct iscsi_portal *portal = NULL;

	for (size_t i = 0; i < iscsi_server_portal_count(server); i++)
		if (strcmp(iscsi_portal_config(iscsi_server_portal(server, i))->address.text,
			   portals[at]) == 0)
			portal = iscsi_server_portal(server, i);
	assert_non_null(portal);
	assert_int_equal(sim_link_new(w->loop, &link, portal, &w->links[at]), 0);
	assert_int_equal(path_new_sim(w->loop, &config, w->links[at], &w->paths[at]), 0);
	real_ops = w->paths[at]->ops;
	counting_ops = *real_ops;
	counting_ops.submit = count_submit;
	w->paths[at]->ops = &counting_ops;
	assert_int_equal(mpio_add_path(w->mpio, w->paths[at]), 0);
}

static void begin(struct world *w, const char *policy)
{
	struct mpio_config config;
	char set[80];
	const char *const sets[] = {set};

	*w = (struct world){0};
	world = w;
	rng_init(&w->rng, 1, 1);
	(void)snprintf(set, sizeof set, "hosts.h1.mpio.policy=%s", policy);
	assert_int_equal(
	    lab_parse("slices.yaml", lab_text, strlen(lab_text), sets, 1, stderr, &w->lab), 0);
	assert_int_equal(loop_new_virtual(0, &w->loop), 0);
	assert_int_equal(
	    target_start_inside(w->loop, &w->lab->group, w->lab->name, 1, &w->target, NULL), 0);
	w->volume = group_find_volume(target_group(w->target), "db1");
	assert_non_null(w->volume);
	mpio_config_for(&lab_find_host(w->lab, "h1")->mpio, "db1", &config);
	assert_int_equal(mpio_new(w->loop, &config, "db1", 1, &w->mpio), 0);
	for (unsigned i = 0; i < PATHS; i++)
		add_path(w, i);
	mpio_start(w->mpio, NS_PER_S, ready, NULL);
	assert_int_equal(loop_run_until(w->loop, 2 * NS_PER_S), 0);
}

static void end(struct world *w)
{
	mpio_free(w->mpio);
	for (unsigned i = 0; i < PATHS; i++)
		sim_link_free(w->links[i]);
	target_stop(w->target);
	loop_free(w->loop);
	lab_free(w->lab);
}

static void one_done(struct io *io)
{
	struct world *w = io->owner;

	assert_int_equal(io->status, 0);
	w->in_flight--;
}

static void one(struct world *w, enum io_op op, uint64_t offset_bytes)
{
	w->iov = (struct iovec){w->data, BLOCK};
	w->io = (struct io){.op = op,
			    .offset_bytes = offset_bytes,
			    .length_bytes = BLOCK,
			    .iov = &w->iov,
			    .iov_count = 1,
			    .done = one_done,
			    .owner = w};
	w->in_flight++;
	io_submit(mpio_layer(w->mpio), &w->io);
	for (unsigned i = 0; i < 1000 && w->in_flight; i++)
		assert_int_equal(loop_run_until(w->loop, loop_now_ns(w->loop) + 10 * NS_PER_MS), 0);
	assert_int_equal(w->in_flight, 0);
}

/* A write to every MiB maps all pages; then the map is asked for again. */
static void fill(struct world *w)
{
	for (uint64_t at = 0; at < 256 * MIB; at += MIB)
		one(w, IO_WRITE, at);
	assert_int_equal(loop_run_until(w->loop, loop_now_ns(w->loop) + 5 * NS_PER_S), 0);
	w->direct = w->hops = w->unmapped = 0;
}

static void read_at_random(struct world *w, unsigned count)
{
	w->direct = w->hops = w->unmapped = 0;
	for (unsigned i = 0; i < count; i++)
		one(w, IO_READ, rng_below(&w->rng, 256 * MIB / BLOCK) * BLOCK);
	assert_int_equal(w->unmapped, 0);
}

static void every_block_goes_to_its_member(void **unused)
{
	struct world w;

	begin(&w, "slice-aware");
	fill(&w);
	read_at_random(&w, 500);
	assert_int_equal(w.hops, 0);
	assert_int_equal(w.direct, 500);
	end(&w);
}

/* By comparison: without the map about half of the requests take a hop. */
static void other_policies_do_not_know(void **unused)
{
	struct world w;

	begin(&w, "least-queue-depth");
	fill(&w);
	read_at_random(&w, 500);
	assert_in_range(w.hops, 150, 350);
	end(&w);
}

/* With every path to one member gone the others serve its blocks, by a hop; and no longer when they
 * are back. */
static void a_member_without_paths_is_reached_by_hops(void **unused)
{
	struct world w;

	begin(&w, "slice-aware");
	fill(&w);
	sim_link_cut(w.links[0], true);
	sim_link_cut(w.links[1], true);
	read_at_random(&w, 300);
	assert_in_range(w.hops, 60, 240);
	sim_link_cut(w.links[0], false);
	sim_link_cut(w.links[1], false);
	assert_int_equal(loop_run_until(w.loop, loop_now_ns(w.loop) + 20 * NS_PER_S), 0);
	read_at_random(&w, 300);
	assert_int_equal(w.hops, 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_block_goes_to_its_member),
	    cmocka_unit_test(other_policies_do_not_know),
	    cmocka_unit_test(a_member_without_paths_is_reached_by_hops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
