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
#include "harness/run/fault_command.h"
#include "harness/sim/direct.h"
#include "harness/workload/foreign.h"
#include "initiator/mpio/host_load.h"
#include "target/control/control.h"

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
	uint32_t isid_qualifier;  /* tells the sessions of the host at hand apart */
	struct run_device *devices;
	unsigned device_count, devices_waited;
	int start_status;
	char start_why[200];
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
		config.isid_qualifier = ++sim->isid_qualifier;
		if (!r)
			r = path_new_sim(sim->loop, &config, link, &path);
		if (!r)
			r = mpio_add_path(mpio, path);
		if (r)
			return r;
	}
	return 0;
}

static int connect_links(struct sim_lab *sim, const struct host_config *host,
			 struct host_load *loads, struct run_device *device)
{
	struct mpio_config config;
	int r;

	mpio_config_for(&host->mpio, device->volume, &config);
	r = mpio_new(sim->loop, &config, device->volume,
		     sim->lab->seed ^ rng_stream_of(device->volume), &device->mpio);
	if (r)
		return r;
	mpio_share_loads(device->mpio, loads);
	return add_paths(sim, host, device->volume, device->mpio);
}

static int connect_directly(struct sim_lab *sim, struct run_device *device)
{
	struct volume *volume = group_find_volume(target_group(sim->target), device->volume);

	if (!volume)
		return -ENOENT;
	device->block_bytes = volume_block_bytes(volume);
	return sim_direct_new(sim->loop, volume_layer(volume), 2 * sim->options.link.delay_ns,
			      &device->layer);
}

static int add_device(struct sim_lab *sim, const struct host_config *host, const char *volume,
		      struct host_load *loads)
{
	struct run_device *device =
	    realloc(sim->devices, (sim->device_count + 1) * sizeof(*sim->devices));

	if (!device)
		return -ENOMEM;
	sim->devices = device;
	device += sim->device_count++;
	*device = (struct run_device){
	    .host = host->name,
	    .volume = volume,
	    .known_zero = lab_volume_is_fresh(sim->lab, volume),
	};
	return sim->options.network == VIRTUAL_NONE ? connect_directly(sim, device)
						    : connect_links(sim, host, loads, device);
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
		sim->isid_qualifier = 0;
		for (size_t j = 0; !r && (volume = lab_host_volume(&hosts[i], j)); j++)
			r = add_device(sim, &hosts[i], volume, sim->loads[i]);
	}
	return r;
}

/* ---- faults: links instead of portals ---- */

static bool is_of_links(const struct fault_config *fault)
{
	return fault->kind <= FAULT_ALL_PATHS_DOWN || fault_is_of_network(fault->kind);
}

static bool can_simulate(const struct fault_config *fault, int network)
{
	if (is_of_links(fault))
		return network == VIRTUAL_LINKS && !fault->above_bytes && fault->loss <= 0 &&
		       fault->kind != FAULT_DIGEST_CORRUPTION;
	if (fault_is_of_workload(fault->kind))
		return true;
	if (!fault_has_command(fault->kind))
		return false;
	/* Without a network nothing comes through controllers and ports. */
	return network == VIRTUAL_LINKS || fault_has_drive(fault->kind) ||
	       fault->kind == FAULT_BATTERY_LOST || fault->kind == FAULT_SCRUB;
}

/* The target's own commands, without the socket. */
static int command_target(struct sim_lab *sim, const struct fault_config *fault, bool begin,
			  struct err *err)
{
	json_t *request = fault_command(fault, begin);
	json_t *answer = control_execute(sim->loop, sim->target, request);
	int r = json_is_true(json_object_get(answer, "ok")) ? 0 : -EREMOTEIO;
	const char *why = json_string_value(json_object_get(answer, "error"));

	if (r)
		err_set(err, r, "%s", why ? why : "the target refuses the fault");
	json_decref(answer);
	json_decref(request);
	return r;
}

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

	if (!is_of_links(fault))
		return command_target(sim, fault, begin, err);
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
	for (unsigned i = 0; i < sim->device_count; i++)
		sim->devices_waited += sim->devices[i].mpio != NULL;
	for (unsigned i = 0; i < sim->device_count; i++)
		if (sim->devices[i].mpio)
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

static int check_faults(const struct lab *lab, int network, struct err *err)
{
	for (size_t i = 0; i < lab->timeline_count; i++) {
		const struct fault_config *fault = lab->timeline[i].fault;

		if (can_simulate(fault, network))
			continue;
		err_set(err, -EINVAL, "virtual time has no fault %s%s",
			fault_kind_names[fault->kind],
			network == VIRTUAL_NONE ? " without a network" : " of this kind");
		if (network == VIRTUAL_NONE && can_simulate(fault, VIRTUAL_LINKS))
			err_hint(err, "with --set virtual.network=links it has");
		return -EINVAL;
	}
	return 0;
}

int sim_lab_check(const struct lab *lab, int network, struct err *err)
{
	if (!lab_can_run(lab, err))
		return -EINVAL;
	if (lab->workload_ops == &foreign_workload_ops)
		return err_set(err, -EINVAL, "nobody else comes to a target in virtual time");
	if (!lab->has_group) {
		err_set(err, -EINVAL, "in virtual time there are only arrays of the lab's own");
		err_hint(err, "give the lab a group, and its hosts `volumes` instead of `luns`");
		return -EINVAL;
	}
	for (size_t i = 0; i < lab->hosts.count; i++) {
		const struct host_config *host = &((const struct host_config *)lab->hosts.items)[i];

		if (host->luns.count)
			return err_set(err, -EINVAL,
				       "host '%s' has luns of its own: none of them "
				       "is there in virtual time",
				       host->name);
	}
	if (network == VIRTUAL_LINKS && lab->group.chap.secrets)
		return err_set(err, -ENOTSUP,
			       "simulated links know no CHAP: leave out group.chap, "
			       "or --set virtual.network=none");
	return check_faults(lab, network, err);
}

int sim_lab_new(const struct lab *lab, const struct sim_lab_options *options,
		struct sim_lab **ret_sim, struct err *err)
{
	struct sim_lab *sim;
	int r = sim_lab_check(lab, options->network, err);

	if (r)
		return r;
	sim = calloc(1, sizeof *sim);
	if (!sim) {
		err_set(err, -ENOMEM, "no memory for the lab");
		return -ENOMEM;
	}
	sim->lab = lab;
	sim->options = *options;
	r = build(sim, err);
	if (!r)
		r = connect_devices(sim, err);
	if (r) {
		err_set(err, r, "cannot build the lab: %s", strerror(-r));
		sim_lab_free(sim);
		return r;
	}
	*ret_sim = sim;
	return 0;
}

int sim_lab_open(struct sim_lab *sim, struct event_log *events, struct run_engine **ret_engine,
		 struct err *err)
{
	struct fault_ops faults = {.apply = apply_fault, .arg = sim};
	int r = run_engine_new(sim->loop, sim->lab, sim->devices, sim->device_count, &faults,
			       events, &sim->engine, err);

	if (!r)
		*ret_engine = sim->engine;
	return r;
}

void sim_lab_record(struct sim_lab *sim, struct recorder *recorder)
{
	for (unsigned i = 0; i < sim->device_count; i++)
		sim->devices[i].recorder = recorder;
}

struct loop *sim_lab_loop(struct sim_lab *sim)
{
	return sim->loop;
}

struct target *sim_lab_target(struct sim_lab *sim)
{
	return sim->target;
}

struct sim_lab *sim_lab_free(struct sim_lab *sim)
{
	if (!sim)
		return NULL;
	run_engine_free(sim->engine);
	for (unsigned i = 0; i < sim->device_count; i++)
		mpio_free(sim->devices[i].mpio);
	for (size_t i = 0; i < sim->link_count; i++)
		sim_link_free(sim->links[i].link);
	/* It ends what is still in flight. */
	target_stop(sim->target);
	for (unsigned i = 0; i < sim->device_count; i++)
		sim_direct_free(sim->devices[i].layer);
	loop_free(sim->loop);
	for (size_t i = 0; sim->loads && i < sim->lab->hosts.count; i++)
		host_load_free(sim->loads[i]);
	free(sim->loads);
	free(sim->links);
	free(sim->devices);
	free(sim);
	return NULL;
}

static int run(struct sim_lab *sim, struct event_log *events, struct err *err)
{
	struct run_engine *engine;
	int r = sim_lab_open(sim, events, &engine, err);

	if (r)
		return r;
	run_engine_start(engine, stop_loop, sim->loop);
	r = loop_run(sim->loop);
	if (!r && sim->options.out_dir)
		r = report_write_all(run_engine_record(engine), sim->options.out_dir, err);
	return r;
}

int sim_lab_run(const struct lab *lab, const struct sim_lab_options *options,
		struct record **ret_record, struct err *err)
{
	struct event_log *events = NULL;
	struct sim_lab *sim;
	int r = sim_lab_new(lab, options, &sim, err);

	if (r)
		return r;
	r = event_log_open(options->out_dir, &events, err);
	if (!r)
		r = run(sim, events, err);
	if (!r)
		*ret_record = run_engine_take_record(sim->engine);
	sim_lab_free(sim);
	event_log_close(events);
	return r;
}
