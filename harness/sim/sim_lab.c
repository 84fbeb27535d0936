/* SPDX-License-Identifier: MIT
 *
 * Builds a lab in one process on the virtual loop and runs it.
 */
#include "harness/sim/sim_lab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/run/run.h"
#include "harness/sim/sim_array.h"
#include "initiator/mpio/host_load.h"
#include "target/target.h"

/* Long enough for any login over the links a test thinks of. */
#define SETTLE_NS (30 * NS_PER_S)

/* A link for each pair of host and portal, shared by the host's volumes, as a real port is. */
struct lab_link {
	const char *host;
	char portal[64];
	struct sim_link *link;
};

struct sim_lab {
	const struct lab *lab;
	struct sim_lab_options options;
	struct loop *loop;
	struct target *target;
	struct lab_link *links;
	size_t link_count;
	struct host_load **loads; /* one a host */
	struct run_device *devices;
	unsigned device_count, devices_waited;
	int start_status;
	char start_why[200];
	struct event_log *events;
	struct run_engine *engine;
};

static struct iscsi_portal *find_portal(struct sim_lab *sim, const char *address)
{
	struct iscsi_server *server = target_server(sim->target);

	for (size_t i = 0; i < iscsi_server_portal_count(server); i++) {
		struct iscsi_portal *portal = iscsi_server_portal(server, i);

		if (strcmp(iscsi_portal_config(portal)->address.text, address) == 0)
			return portal;
	}
	return NULL;
}

static int find_link(struct sim_lab *sim, const char *host, const char *portal,
		     struct sim_link **ret)
{
	struct sim_link_config config = sim->options.link;
	struct lab_link *grown;
	int r;

	for (size_t i = 0; i < sim->link_count; i++) {
		if (!strcmp(sim->links[i].host, host) && !strcmp(sim->links[i].portal, portal)) {
			*ret = sim->links[i].link;
			return 0;
		}
	}
	grown = realloc(sim->links, (sim->link_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	sim->links = grown;
	config.seed = sim->lab->seed ^ rng_stream_of(portal);
	r = sim_link_new(sim->loop, &config, find_portal(sim, portal),
			 &grown[sim->link_count].link);
	if (r)
		return r;
	grown[sim->link_count].host = host;
	snprintf(grown[sim->link_count].portal, sizeof grown[0].portal, "%s", portal);
	*ret = grown[sim->link_count++].link;
	return 0;
}

static int add_paths(struct sim_lab *sim, const struct host_config *host, const char *volume,
		     struct mpio *mpio)
{
	struct lab_path paths[LAB_MAX_PATHS];
	char initiator[224], iqn[224];
	int count = lab_paths_of(sim->lab, host, volume, paths);
	struct scsi_target *target;
	unsigned lun;

	target = exports_find(target_exports(sim->target), target_group(sim->target),
			      sim->lab->name, volume, &lun);
	if (count < 0 || !target)
		return count < 0 ? count : -ENOENT;
	snprintf(initiator, sizeof initiator, "iqn.2026-11.test.sanlab:host:%s", host->name);
	export_iqn(iqn, sizeof iqn, target_style(sim->target), sim->lab->name, volume);
	for (int i = 0; i < count; i++) {
		struct path_config config = {0};
		struct sim_link *link;
		struct path *path;
		int r = find_link(sim, host->name, paths[i].portal, &link);

		mpio_path_config(&host->mpio, &config);
		config.portal = paths[i].portal;
		config.target = iqn;
		config.lun = lun;
		config.initiator_name = initiator;
		config.isid_qualifier = (uint32_t)i + 1;
		if (!r)
			r = path_new_sim(sim->loop, &config, link, &path);
		if (!r)
			r = mpio_add_path(mpio, path);
		if (r)
			return r;
	}
	return 0;
}

static int add_device(struct sim_lab *sim, const struct host_config *host, const char *volume,
		      struct host_load *loads)
{
	struct run_device *grown =
	    realloc(sim->devices, (sim->device_count + 1) * sizeof(*sim->devices));
	struct mpio_config config;
	struct mpio *mpio;
	int r;

	if (!grown)
		return -ENOMEM;
	sim->devices = grown;
	mpio_config_for(&host->mpio, volume, &config);
	r = mpio_new(sim->loop, &config, volume, sim->lab->seed ^ rng_stream_of(volume), &mpio);
	if (r)
		return r;
	mpio_share_loads(mpio, loads);
	grown[sim->device_count++] = (struct run_device){
	    .host = host->name, .volume = volume, .mpio = mpio, .known_zero = true};
	return add_paths(sim, host, volume, mpio);
}

static int build(struct sim_lab *sim, struct err *err)
{
	const struct host_config *hosts = sim->lab->hosts.items;
	int r = loop_new_virtual(0, &sim->loop);

	sim->loads = calloc(sim->lab->hosts.count + 1, sizeof(struct host_load *));
	if (!r && !sim->loads)
		r = -ENOMEM;
	if (!r)
		r = target_start_inside(sim->loop, &sim->lab->group, sim->lab->name, sim->lab->seed,
					&sim->target, err);
	for (size_t i = 0; !r && i < sim->lab->hosts.count; i++) {
		const char *volume;

		r = host_load_new(&sim->loads[i]);
		for (size_t j = 0; !r && (volume = lab_host_volume(&hosts[i], j)); j++)
			r = add_device(sim, &hosts[i], volume, sim->loads[i]);
	}
	return r;
}

/* ---- faults: links instead of portals ---- */

/* A link is a host's and a portal's: all its sessions share what happens to one. */
static bool hits(const struct sim_lab *sim, const struct fault_config *fault,
		 const struct lab_link *link)
{
	if (fault->kind == FAULT_SESSION_RESET)
		return !strcmp(fault->host, link->host) &&
		       !strcmp(fault->portal.text, link->portal);
	return lab_fault_hits(sim->lab, fault, link->host, "", 0, link->portal);
}

static void hit_link(const struct sim_lab *sim, struct sim_link *link,
		     const struct fault_config *fault, bool begin)
{
	const struct sim_link_config *usual = &sim->options.link;

	switch (fault->kind) {
	case FAULT_BLACK_HOLE:
	case FAULT_PATH_HOLD:
		sim_link_stall(link, begin);
		break;
	case FAULT_PATH_SLOW:
		sim_link_set_delay(link, usual->delay_ns + (begin ? fault->delay_ns : 0),
				   usual->jitter_ns + (begin ? fault->jitter_ns : 0));
		break;
	case FAULT_HALF_OPEN:
	case FAULT_PORTAL_SILENT:
		sim_link_stall(link, begin);
		if (begin)
			break;
		sim_link_cut(link, true);
		sim_link_cut(link, false);
		break;
	default:
		sim_link_cut(link, begin);
		if (fault_is_instant(fault->kind))
			sim_link_cut(link, false);
		break;
	}
}

static int apply_fault(void *arg, const struct fault_config *fault, bool begin, struct err *err)
{
	struct sim_lab *sim = arg;
	unsigned hit = 0;

	if (fault->kind > FAULT_ALL_PATHS_DOWN && !fault_is_of_network(fault->kind))
		return sim_array_apply(sim->target, fault, begin, err);
	if (fault->above_bytes || fault->loss > 0 || fault->kind == FAULT_DIGEST_CORRUPTION)
		return err_set(err, -ENOTSUP, "the simulation has no fault of that kind");
	for (size_t i = 0; i < sim->link_count; i++) {
		const struct lab_link *one = &sim->links[i];

		if (!hits(sim, fault, one))
			continue;
		hit++;
		hit_link(sim, one->link, fault, begin);
	}
	return hit ? 0 : err_set(err, -ENOENT, "no simulated link fits the fault");
}

/* ---- the run ---- */

static void stop_loop(void *arg)
{
	loop_stop(arg);
}

static void device_ready(void *arg, int status, const char *why)
{
	struct sim_lab *sim = arg;

	if (status && !sim->start_status) {
		sim->start_status = status;
		snprintf(sim->start_why, sizeof sim->start_why, "%s", why ? why : "no path");
	}
	if (--sim->devices_waited == 0)
		loop_stop(sim->loop);
}

static int connect_devices(struct sim_lab *sim, struct err *err)
{
	sim->devices_waited = sim->device_count;
	for (unsigned i = 0; i < sim->device_count; i++)
		mpio_start(sim->devices[i].mpio, SETTLE_NS, device_ready, sim);
	while (sim->devices_waited) {
		int r = loop_run(sim->loop);

		if (r)
			return r;
	}
	if (sim->start_status)
		return err_set(err, sim->start_status, "cannot connect: %s", sim->start_why);
	return 0;
}

static int run(struct sim_lab *sim, struct err *err)
{
	struct fault_ops faults = {.apply = apply_fault, .arg = sim};
	int r = connect_devices(sim, err);

	if (!r)
		r = event_log_open(sim->options.out_dir, &sim->events, err);
	if (!r)
		r = run_engine_new(sim->loop, sim->lab, sim->devices, sim->device_count, &faults,
				   sim->events, &sim->engine, err);
	if (r)
		return r;
	run_engine_start(sim->engine, stop_loop, sim->loop);
	r = loop_run(sim->loop);
	if (!r && sim->options.out_dir)
		r = report_write_all(run_engine_record(sim->engine), sim->options.out_dir, err);
	return r;
}

static void tear_down(struct sim_lab *sim)
{
	run_engine_free(sim->engine);
	for (unsigned i = 0; i < sim->device_count; i++)
		mpio_free(sim->devices[i].mpio);
	event_log_close(sim->events);
	for (size_t i = 0; i < sim->link_count; i++)
		sim_link_free(sim->links[i].link);
	target_stop(sim->target);
	loop_free(sim->loop);
	for (size_t i = 0; sim->loads && i < sim->lab->hosts.count; i++)
		host_load_free(sim->loads[i]);
	free(sim->loads);
	free(sim->links);
	free(sim->devices);
}

int sim_lab_run(const struct lab *lab, const struct sim_lab_options *options,
		struct record **ret_record, struct err *err)
{
	struct sim_lab sim = {.lab = lab, .options = *options};
	int r;

	if (!lab->has_group || !lab_can_run(lab, err))
		return err_set(err, -EINVAL, "a simulated lab needs a group, hosts and a workload");
	r = build(&sim, err);
	if (!r)
		r = run(&sim, err);
	if (!r)
		*ret_record = run_engine_take_record(sim.engine);
	tear_down(&sim);
	return r;
}
