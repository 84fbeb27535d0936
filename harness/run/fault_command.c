/* SPDX-License-Identifier: MIT
 *
 * The table of commands: the one that begins each fault and the one that ends it.
 */
#include "harness/run/fault_command.h"

#include <assert.h>

static const struct {
	const char *begin, *end;
} target_commands[FAULT_KINDS] = {
    [FAULT_PORTAL_SILENT] = {"portal-silent", "portal-speaks"},
    [FAULT_DRIVE_FAIL] = {"drive-fail", "drive-return"},
    [FAULT_DRIVE_SLOW] = {"drive-slow", "drive-slow"},
    [FAULT_DRIVE_LATENT] = {"drive-latent", "drive-latent"},
    [FAULT_MEMBER_OFFLINE] = {"member-offline", "member-online"},
    [FAULT_CONTROLLER_FAILOVER] = {"controller-fail", "controller-return"},
    [FAULT_LINK_DOWN] = {"link-down", "link-up"},
    [FAULT_BATTERY_LOST] = {"battery-lost", "battery-ok"},
    [FAULT_SCRUB] = {"scrub-start", "scrub-stop"},
    [FAULT_ALUA_FLIP] = {"alua-flip", NULL},
    [FAULT_CHAP_SECRET] = {"chap-change", "chap-restore"},
};

json_t *fault_command(const struct fault_config *fault, bool begin)
{
	const char *name =
	    begin ? target_commands[fault->kind].begin : target_commands[fault->kind].end;
	json_t *request;

	assert(name);
	request = json_pack("{s:s}", "command", name);

	if (fault->kind == FAULT_PORTAL_SILENT)
		json_object_set_new(request, "portal", json_string(fault->portal.text));
	if (fault->member)
		json_object_set_new(request, "member", json_string(fault->member));
	if (fault_has_drive(fault->kind))
		json_object_set_new(request, "drive", json_integer((json_int_t)fault->drive));
	if (fault->controller >= 0)
		json_object_set_new(request, "controller", json_integer(fault->controller));
	if (fault->volume)
		json_object_set_new(request, "volume", json_string(fault->volume));
	if (fault->user)
		json_object_set_new(request, "user", json_string(fault->user));
	if (fault->transition_ns)
		json_object_set_new(
		    request, "transition",
		    json_sprintf("%lluns", (unsigned long long)fault->transition_ns));
	if (fault->kind == FAULT_LINK_DOWN)
		json_object_set_new(request, "port", json_integer((json_int_t)fault->port));
	if (fault->kind == FAULT_DRIVE_SLOW) {
		json_object_set_new(request, "factor", json_real(begin ? fault->factor : 1));
		json_object_set_new(request, "extra_ns",
				    json_integer(begin ? (json_int_t)fault->extra_ns : 0));
	}
	if (fault->kind == FAULT_DRIVE_LATENT)
		json_object_set_new(request, "rate", json_real(begin ? fault->rate : 0));
	return request;
}

bool fault_has_command(int kind)
{
	return target_commands[kind].begin != NULL;
}
