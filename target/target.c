/* SPDX-License-Identifier: MIT
 *
 * Puts the target together: group (array), exports (SCSI targets) and portals.
 */
#include "target/target.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/knob.h"
#include "target/controllers.h"
#include "target/export.h"
#include "target/iscsi/server.h"
#include "target/scsi/alua.h"
#include "target/security.h"

/* Payload in flight over all sessions; beyond it commands end with BUSY. */
#define BUFFER_LIMIT_BYTES (512 * MIB)

struct target {
	struct loop *loop;
	struct buf_pool *buffers;
	struct group *group;
	struct exports exports;
	struct iscsi_server *server;
	struct controllers *controllers;
	struct target_security security;
	const char *lab_name;
	enum group_style style;
	bool inside; /* no sockets */
};

/* Style lun has two controllers, and every other member portal is the second one's.  Style
 * equallogic has a group for each member, so that REPORT REFERRALS can name it. */
static uint16_t port_group(enum group_style style, size_t member, size_t member_portal)
{
	if (style == GROUP_STYLE_LUN)
		return (uint16_t)(1 + member_portal % 2);
	return (uint16_t)(1 + member);
}

/* In style lun each portal is a SCSI port; in style equallogic the portals of a member are one. */
static uint16_t portal_group(const struct target *target, uint16_t port_group)
{
	if (target->style == GROUP_STYLE_LUN)
		return (uint16_t)(iscsi_server_portal_count(target->server) + 1);
	return port_group;
}

static int listen_on(struct target *target, const struct cfg_portal *address, const char *owner,
		     bool redirects, uint16_t group, struct err *err)
{
	struct iscsi_portal *portal;
	struct iscsi_portal_config config = {
	    .address = *address,
	    .group_tag = portal_group(target, group),
	    .target_port_group = group,
	    .redirects = redirects,
	    .owner = owner,
	};

	int r = target->inside ? iscsi_server_add_portal(target->server, &config, &portal)
			       : iscsi_server_listen(target->server, &config, &portal, err);

	/* No I/O ever comes through a portal that redirects. */
	if (!r && !redirects && scsi_port_add(target->exports.device, group, config.group_tag) < 0)
		r = err_set(err, -ENOSPC, "too many portals");
	return r;
}

static int listen_everywhere(struct target *target, const struct group_config *config,
			     struct err *err)
{
	const struct pool_config *pools = config->pools.items;
	size_t member = 0, member_portal = 0;
	int r = 0;

	if (config->portal.set)
		r = listen_on(target, &config->portal, "group",
			      config->style == GROUP_STYLE_EQUALLOGIC, 1, err);
	for (size_t i = 0; !r && i < config->pools.count; i++) {
		const struct member_config *members = pools[i].members.items;

		for (size_t j = 0; !r && j < pools[i].members.count; j++, member++) {
			const struct cfg_portal *portals = members[j].portals.items;

			for (size_t k = 0; !r && k < members[j].portals.count; k++)
				r = listen_on(target, &portals[k], members[j].name, false,
					      port_group(target->style, member, member_portal++),
					      err);
		}
	}
	return r;
}

/* Tells ports apart: members own their groups (style equallogic), or controllers take turns in
 * owning volumes, once both can be reached (style lun). */
static void set_access(struct target *target)
{
	struct scsi_device *device = target->exports.device;
	size_t members = group_member_count(target->group);

	if (target->style == GROUP_STYLE_EQUALLOGIC) {
		for (size_t i = 0; i < members; i++)
			scsi_alua_set_member(device, (uint16_t)(1 + i),
					     group_member_at(target->group, i));
		return;
	}
	for (size_t i = 0; scsi_group_exists(device, 2) && i < group_volume_count(target->group);
	     i++)
		scsi_alua_set_owner(scsi_device_add(device, group_volume(target->group, i)),
				    (uint16_t)(1 + i % 2));
}

static int serve_exports(struct target *target)
{
	int r = exports_open(target->loop, target->buffers, target->group, target->style,
			     target->lab_name, &target->exports);

	for (size_t i = 0; !r && i < target->exports.count; i++)
		r = iscsi_server_add_target(target->server, target->exports.targets[i]);
	return r;
}

static struct target *target_new(struct loop *loop, const char *lab_name, bool inside)
{
	struct target *target = calloc(1, sizeof(*target));

	if (target) {
		target->loop = loop;
		target->lab_name = lab_name;
		target->inside = inside;
	}
	return target;
}

/* Stops TARGET, which may be NULL, when it cannot be started. */
static int start(struct target *target, const struct group_config *config, uint64_t seed,
		 struct target **ret_target, struct err *err)
{
	struct loop *loop;
	int r = knobs_load(err);

	if (!target || r) {
		free(target);
		return r ? r : err_set(err, -ENOMEM, "out of memory");
	}
	loop = target->loop;
	target->style = (enum group_style)config->style;
	target->buffers = buf_pool_new(BUFFER_LIMIT_BYTES);
	r = target->buffers ? group_open(loop, config, target->lab_name, seed, &target->group, err)
			    : -ENOMEM;
	if (!r) {
		target->server = iscsi_server_new(loop, target->buffers);
		r = target->server ? serve_exports(target) : -ENOMEM;
	}
	if (!r)
		r = scsi_device_restore(target->exports.device, err);
	if (!r)
		r = target_security_open(config, target->lab_name, target->group, &target->exports,
					 target->server, &target->security, err);
	if (!r)
		r = listen_everywhere(target, config, err);
	if (!r) {
		struct controllers_env env = {loop, target->group, &target->exports,
					      target->server};

		set_access(target);
		r = controllers_open(config, &env, &target->controllers, err);
	}
	if (r) {
		target_stop(target);
		return err_set(err, r, "cannot start the target");
	}
	*ret_target = target;
	return 0;
}

int target_start(struct loop *loop, const struct group_config *config, const char *lab_name,
		 uint64_t seed, struct target **ret_target, struct err *err)
{
	return start(target_new(loop, lab_name, false), config, seed, ret_target, err);
}

int target_start_inside(struct loop *loop, const struct group_config *config, const char *lab_name,
			uint64_t seed, struct target **ret_target, struct err *err)
{
	return start(target_new(loop, lab_name, true), config, seed, ret_target, err);
}

struct target *target_stop(struct target *target)
{
	if (!target)
		return NULL;
	controllers_close(target->controllers);
	/* With tasks that do not end all they use stays, as after a kill: stores bear that. */
	if (target->server && iscsi_server_free(target->server))
		return NULL;
	target_security_close(&target->security);
	exports_close(&target->exports);
	if (target->group)
		group_close(target->group);
	if (target->buffers)
		buf_pool_free(target->buffers);
	free(target);
	return NULL;
}

const struct exports *target_exports(const struct target *target)
{
	return &target->exports;
}

struct group *target_group(struct target *target)
{
	return target->group;
}

struct scsi_lu *target_find_lu(struct target *target, const char *volume)
{
	struct volume *found = group_find_volume(target->group, volume);

	/* Exported already: this only finds it. */
	return found ? scsi_device_add(target->exports.device, found) : NULL;
}

struct chap_secrets *target_secrets(struct target *target)
{
	return target->security.secrets;
}

struct controllers *target_controllers(struct target *target)
{
	return target->controllers;
}

struct iscsi_server *target_server(struct target *target)
{
	return target->server;
}

const char *target_lab_name(const struct target *target)
{
	return target->lab_name;
}

enum group_style target_style(const struct target *target)
{
	return target->style;
}

struct buf_pool *target_buffers(struct target *target)
{
	return target->buffers;
}
