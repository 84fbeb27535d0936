/* SPDX-License-Identifier: MIT
 *
 * Random faults of a system.
 */
#include "tests/sim/system/faults.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/member_gate.h"
#include "target/controllers.h"
#include "target/drive/faults.h"
#include "target/scsi/alua.h"
#include "tests/sim/array/crash.h"

struct fault_type {
	const char *name;
	unsigned share; /* how often, against the others */
	bool (*begin)(struct faults *faults, struct fault *fault);
	void (*end)(struct faults *faults, struct fault *fault); /* NULL: over at once */
};

static uint64_t pick(struct faults *faults, uint64_t least, uint64_t most)
{
	return world_pick(faults->world, least, most);
}

/* ---- links ---- */

static bool cut(struct faults *faults, struct fault *fault)
{
	sim_link_cut(fault->link->link, true);
	return true;
}

static void mend(struct faults *faults, struct fault *fault)
{
	sim_link_cut(fault->link->link, false);
}

static bool reset(struct faults *faults, struct fault *fault)
{
	sim_link_cut(fault->link->link, true);
	sim_link_cut(fault->link->link, false);
	return true;
}

static bool stall(struct faults *faults, struct fault *fault)
{
	sim_link_stall(fault->link->link, true);
	return true;
}

static bool stall_out(struct faults *faults, struct fault *fault)
{
	sim_link_stall_lane(fault->link->link, SIM_TO_TARGET, true);
	return true;
}

static bool stall_in(struct faults *faults, struct fault *fault)
{
	sim_link_stall_lane(fault->link->link, SIM_TO_INITIATOR, true);
	return true;
}

static void go_on(struct faults *faults, struct fault *fault)
{
	sim_link_stall(fault->link->link, false);
}

static bool drop(struct faults *faults, struct fault *fault)
{
	sim_link_drop(fault->link->link, pick(faults, 0, 1) ? SIM_TO_TARGET : SIM_TO_INITIATOR);
	return true;
}

static bool slow(struct faults *faults, struct fault *fault)
{
	sim_link_set_delay(fault->link->link, pick(faults, 1, 300) * NS_PER_MS,
			   pick(faults, 0, 100) * NS_PER_MS);
	return true;
}

static void quick(struct faults *faults, struct fault *fault)
{
	sim_link_set_delay(fault->link->link, 100 * NS_PER_US, 50 * NS_PER_US);
}

static void for_host(struct faults *faults, const struct fault *fault,
		     void (*fn)(struct sim_link *link, bool on), bool on)
{
	for (unsigned i = 0; i < faults->world->link_count; i++)
		if (faults->world->links[i].host == fault->link->host)
			fn(faults->world->links[i].link, on);
}

static bool cut_all(struct faults *faults, struct fault *fault)
{
	for_host(faults, fault, sim_link_cut, true);
	return true;
}

static void mend_host(struct faults *faults, struct fault *fault)
{
	for_host(faults, fault, sim_link_cut, false);
}

static bool stall_all(struct faults *faults, struct fault *fault)
{
	for_host(faults, fault, sim_link_stall, true);
	return true;
}

static void go_on_host(struct faults *faults, struct fault *fault)
{
	for_host(faults, fault, sim_link_stall, false);
}

/* ---- the target's front ---- */

static void lead(struct faults *faults, struct fault *fault, bool impostor)
{
	reset(faults, fault);
	world_lead(faults->world, fault->link, impostor);
}

static bool remap(struct faults *faults, struct fault *fault)
{
	if (!faults->world->impostor.server)
		return false;
	lead(faults, fault, true);
	return true;
}

static void map_back(struct faults *faults, struct fault *fault)
{
	lead(faults, fault, false);
}

static bool stop_target(struct faults *faults, struct fault *fault)
{
	if (!faults->world->dir[0] || !faults->world->target)
		return false;
	world_stop_target(faults->world);
	return true;
}

static void start_target(struct faults *faults, struct fault *fault)
{
	if (!faults->world->target)
		(void)world_start_target(faults->world);
}

static bool crash_target(struct faults *faults, struct fault *fault)
{
	if (!faults->world->dir[0] || !faults->world->target)
		return false;
	crash_arm(pick(faults, 1, 400));
	return true;
}

static void end_crash(struct faults *faults, struct fault *fault)
{
	crash_disarm();
	if (!faults->world->target)
		start_target(faults, fault);
}

static void reset_done(struct path_fence *reset, int status)
{
	struct other_nexus *other = reset->owner;

	other->resetting = false;
}

/* By another initiator, once it has logged in. */
static bool reset_unit(struct faults *faults, struct fault *fault)
{
	struct other_nexus *other = &faults->other;

	if (!other->path->up)
		(void)path_connect(other->path); /* for the next time */
	if (!other->path->up || other->resetting)
		return false;
	other->resetting = path_reset_unit(other->path, &other->reset) == 0;
	return other->resetting;
}

static bool is_lun_style(const struct world *world)
{
	return world->lab->group.style == GROUP_STYLE_LUN;
}

static struct scsi_lu *unit(struct world *world, unsigned volume)
{
	return scsi_device_add(target_exports(world->target)->device,
			       group_volume(target_group(world->target), volume));
}

static bool flip_access(struct faults *faults, struct fault *fault)
{
	static const enum alua_state states[] = {ALUA_OPTIMIZED, ALUA_NON_OPTIMIZED, ALUA_STANDBY,
						 ALUA_UNAVAILABLE, ALUA_OFFLINE};
	struct world *world = faults->world;
	unsigned volume = (unsigned)pick(faults, 0, world->lab->group.volumes.count - 1);

	if (!world->target || !is_lun_style(world))
		return false;
	return scsi_alua_set(unit(world, volume), (uint16_t)pick(faults, 1, 2),
			     states[pick(faults, 0, ARRAY_SIZE(states) - 1)],
			     pick(faults, 0, 1) ? pick(faults, 1, 3000) * NS_PER_MS : 0) == 0;
}

static void restore_access(struct faults *faults, struct fault *fault)
{
	struct world *world = faults->world;

	if (!world->target)
		return;
	for (unsigned i = 0; i < world->lab->group.volumes.count; i++) {
		struct scsi_lu *lu = unit(world, i);
		uint16_t owner = scsi_alua_owner(lu) ? scsi_alua_owner(lu) : 1;

		(void)scsi_alua_set(lu, owner, ALUA_OPTIMIZED, 0);
		(void)scsi_alua_set(lu, (uint16_t)(3 - owner), ALUA_NON_OPTIMIZED, 0);
	}
}

static void tell_controllers(struct faults *faults, const struct fault *fault,
			     enum controller_event_kind kind)
{
	struct controller_event event = {.kind = kind, .controller = fault->drive % 2};
	struct world *world = faults->world;
	struct member *member;
	struct err err = {0};

	if (!world->target)
		return;
	member = group_member_at(target_group(world->target), fault->member);
	/* Both may be dead, or this one already. */
	(void)controllers_event(target_controllers(world->target),
				is_lun_style(world) ? NULL : member, &event, &err);
}

static bool fail_controller(struct faults *faults, struct fault *fault)
{
	tell_controllers(faults, fault, CONTROLLER_FAIL);
	return true;
}

static void return_controller(struct faults *faults, struct fault *fault)
{
	tell_controllers(faults, fault, CONTROLLER_RETURN);
}

/* ---- the array ---- */

static void set_offline(struct faults *faults, const struct fault *fault, bool offline)
{
	struct world *world = faults->world;
	struct err err = {0};

	if (world->target)
		(void)controllers_set_offline(
		    target_controllers(world->target),
		    group_member_at(target_group(world->target), fault->member), offline, &err);
}

static bool member_goes(struct faults *faults, struct fault *fault)
{
	set_offline(faults, fault, true);
	return true;
}

static void member_returns(struct faults *faults, struct fault *fault)
{
	set_offline(faults, fault, false);
}

static struct drive *drive_of(struct faults *faults, const struct fault *fault)
{
	struct world *world = faults->world;
	struct member *member;

	if (!world->target)
		return NULL;
	member = group_member_at(target_group(world->target), fault->member);
	return member_drive(member, fault->drive % member_drive_count(member));
}

static bool drive_goes(struct faults *faults, struct fault *fault)
{
	struct drive *drive = drive_of(faults, fault);

	if (!drive || faults->drive_gone[fault->member])
		return false;
	faults->drive_gone[fault->member] = true;
	drive_set_failed(drive, true);
	return true;
}

static void drive_returns(struct faults *faults, struct fault *fault)
{
	struct drive *drive = drive_of(faults, fault);

	if (drive)
		drive_set_failed(drive, false);
}

static bool drive_slow(struct faults *faults, struct fault *fault)
{
	struct drive *drive = drive_of(faults, fault);

	return drive && drive_set_slow(drive, 1, pick(faults, 5, 60) * NS_PER_MS) == 0;
}

static void drive_quick(struct faults *faults, struct fault *fault)
{
	struct drive *drive = drive_of(faults, fault);

	if (drive)
		(void)drive_set_slow(drive, 1, 0);
}

static bool trouble(struct faults *faults, struct fault *fault)
{
	static const double shares[] = {0.02, 0.1, 0.5};

	faults->world->trouble.share = shares[pick(faults, 0, ARRAY_SIZE(shares) - 1)];
	return true;
}

static void no_trouble(struct faults *faults, struct fault *fault)
{
	faults->world->trouble.share = 0;
}

static const struct fault_type kinds[] = {
    {"cut", 6, cut, mend},
    {"reset", 6, reset, NULL},
    {"stall", 12, stall, go_on},
    {"stall to the target", 6, stall_out, go_on},
    {"stall to the initiator", 6, stall_in, go_on},
    {"drop", 4, drop, NULL},
    {"slow", 6, slow, quick},
    {"all cut", 2, cut_all, mend_host},
    {"all stall", 3, stall_all, go_on_host},
    {"remap", 5, remap, map_back},
    {"target stops", 10, stop_target, start_target},
    {"target crashes", 20, crash_target, end_crash},
    {"reset of a unit", 4, reset_unit, NULL},
    {"access", 14, flip_access, restore_access},
    {"controller", 4, fail_controller, return_controller},
    {"member", 2, member_goes, member_returns},
    {"drive", 3, drive_goes, drive_returns},
    {"slow drive", 3, drive_slow, drive_quick},
    {"trouble", 6, trouble, no_trouble},
};

/* ---- begin and end ---- */

/* Mutants of the fence show where writes are held up. */
static const struct fault_type *favourite(enum wrap_mutant mutant)
{
	const char *name = mutant == WRAP_NO_IDENTITY ? "remap" : "stall";
	const struct fault_type *kind = kinds;

	while (strcmp(kind->name, name) != 0)
		kind++;
	return kind;
}

static const struct fault_type *choose(struct faults *faults)
{
	uint64_t all = 0, at;

	if (faults->world->mutant && pick(faults, 0, 1))
		return favourite(faults->world->mutant);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		all += kinds[i].share;
	at = pick(faults, 0, all - 1);
	for (size_t i = 0;; i++) {
		if (at < kinds[i].share)
			return &kinds[i];
		at -= kinds[i].share;
	}
}

static uint64_t choose_duration(struct faults *faults)
{
	static const uint64_t most_ms[] = {300, 300, 300, 3000, 3000, 12000};
	uint64_t least = faults->world->mutant ? 3 : 0;

	return pick(faults, 1, most_ms[pick(faults, least, ARRAY_SIZE(most_ms) - 1)]) * NS_PER_MS;
}

void faults_begin(struct faults *faults)
{
	struct world *world = faults->world;
	struct fault fault = {.kind = choose(faults)}, *place = NULL;

	for (unsigned i = 0; i < FAULTS_MAX; i++)
		if (!faults->active[i].kind)
			place = &faults->active[i];
	if (!place)
		return;
	fault.link = &world->links[pick(faults, 0, world->link_count - 1)];
	fault.drive = (unsigned)pick(faults, 0, 63);
	if (world->target)
		fault.member =
		    (unsigned)pick(faults, 0, group_member_count(target_group(world->target)) - 1);
	fault.until_ns = loop_now_ns(world->loop) + choose_duration(faults);
	world_trace(world, "FAULT? %s: host %u portal %u member %u", fault.kind->name,
		    fault.link->host, fault.link->portal, fault.member);
	if (!fault.kind->begin(faults, &fault))
		return;
	world_trace(world, "  begins, for %llu ms",
		    (unsigned long long)((fault.until_ns - loop_now_ns(world->loop)) / NS_PER_MS));
	faults->count++;
	if (fault.kind->end)
		*place = fault;
}

static void finish(struct faults *faults, struct fault *fault)
{
	world_trace(faults->world, "MENDED %s", fault->kind->name);
	fault->kind->end(faults, fault);
	fault->kind = NULL;
}

void faults_mend_due(struct faults *faults)
{
	for (unsigned i = 0; i < FAULTS_MAX; i++)
		if (faults->active[i].kind &&
		    faults->active[i].until_ns <= loop_now_ns(faults->world->loop))
			finish(faults, &faults->active[i]);
}

void faults_mend_all(struct faults *faults)
{
	for (unsigned i = 0; i < FAULTS_MAX; i++)
		if (faults->active[i].kind)
			finish(faults, &faults->active[i]);
}

/* ---- life ---- */

bool faults_init(struct faults *faults, struct world *world)
{
	struct path_config config = world->devices[0].wraps[0].path->config;
	struct other_nexus *other = &faults->other;

	faults->world = world;
	config.initiator_name = "iqn.2026-11.test.sanlab:host:other";
	config.event = NULL;
	other->reset = (struct path_fence){.done = reset_done, .owner = other};
	return world_add_link(world, WORLD_HOSTS, world->portal_count - 1) &&
	       path_new_sim(world->loop, &config, world->links[world->link_count - 1].link,
			    &other->path) == 0;
}

void faults_done(struct faults *faults)
{
	path_free(faults->other.path);
}
