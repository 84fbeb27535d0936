/* SPDX-License-Identifier: MIT
 *
 * What each PERSISTENT RESERVE OUT service action does to the state (SPC-4 5.13.5 to 5.13.11).
 *
 * Unit attentions are marked on the registrations they are for; that of the requesting nexus
 * never gets one.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "target/scsi/pr_state.h"
#include "target/scsi/sense.h"

static void attention_to_others(struct pr_state *state, int self, uint32_t code)
{
	for (unsigned i = 0; i < state->count; i++) {
		if ((int)i != self && !state->registrations[i].gone)
			state->registrations[i].attention = code;
	}
}

static bool anyone_left(const struct pr_state *state)
{
	for (unsigned i = 0; i < state->count; i++) {
		if (!state->registrations[i].gone)
			return true;
	}
	return false;
}

/* 5.13.11.3: a registration goes by its owner's wish, and a reservation it alone holds with it. */
static void unregister(struct pr_state *state, unsigned index)
{
	bool held = pr_is_holder(state, index);

	state->registrations[index].gone = true;
	state->registrations[index].attention = SENSE_NONE;
	if (!held)
		return;
	if (pr_type_is_all_registrants(state->type)) {
		if (!anyone_left(state))
			state->type = PR_NONE;
		return;
	}
	if (pr_type_is_for_registrants(state->type))
		attention_to_others(state, (int)index, SENSE_UA_RESERVATIONS_RELEASED);
	state->type = PR_NONE;
}

/* ---- REGISTER, REGISTER AND IGNORE EXISTING KEY ---- */

/* One I_T nexus of the request; *CHANGED when the state is not as before. */
static uint32_t register_one(struct pr_state *state, const struct pr_request *request,
			     const struct pr_initiator *initiator, uint16_t port, bool *changed)
{
	const struct pr_nexus nexus = {initiator->name, initiator->isid, port,
				       pr_hash(initiator->name, initiator->isid, port)};
	int index = pr_find(state, &nexus);

	if (request->action == PR_REGISTER) {
		uint64_t key = index < 0 ? 0 : state->registrations[index].key;

		if (request->key != key)
			return PR_CONFLICT;
	}
	if (index < 0 && request->service_key == 0)
		return SENSE_NONE;
	*changed = true;
	if (index < 0)
		return pr_add(state, initiator, port, request->service_key);
	if (request->service_key == 0)
		unregister(state, (unsigned)index);
	else
		state->registrations[index].key = request->service_key;
	return SENSE_NONE;
}

/* The initiator ports that SPEC_I_PT names: those registered already keep what they have. */
static uint32_t register_named(struct pr_state *state, const struct pr_request *request,
			       uint16_t port)
{
	uint32_t code = SENSE_NONE;

	for (unsigned i = 0; code == SENSE_NONE && i < request->initiator_count; i++) {
		const struct pr_initiator *initiator = &request->initiators[i];
		const struct pr_nexus nexus = {initiator->name, initiator->isid, port,
					       pr_hash(initiator->name, initiator->isid, port)};

		if (pr_find(state, &nexus) < 0)
			code = pr_add(state, initiator, port, request->service_key);
	}
	return code;
}

static uint32_t register_on_port(struct pr_state *state, const struct pr_request *request,
				 uint16_t port, bool *changed)
{
	struct pr_initiator self;
	uint32_t code;

	snprintf(self.name, sizeof self.name, "%s", request->from.name);
	memcpy(self.isid, request->from.isid, sizeof self.isid);
	code = register_one(state, request, &self, port, changed);
	if (code == SENSE_NONE && request->specifies && request->service_key != 0)
		code = register_named(state, request, port);
	return code;
}

/* ALL_TG_PT: as if the request had come through each target port, but all or none. */
static uint32_t apply_register(struct pr_state *state, const struct pr_request *request)
{
	bool changed = false;
	uint32_t code;

	if (request->specifies) {
		int self = pr_find(state, &request->from);

		if (request->action != PR_REGISTER)
			return SENSE_INVALID_FIELD_IN_LIST;
		/* A registered nexus registers nobody else (table of 5.13.7). */
		if (self >= 0)
			return request->key == state->registrations[self].key
				   ? SENSE_INVALID_FIELD_IN_LIST
				   : PR_CONFLICT;
	}
	code = register_on_port(state, request, request->from.port, &changed);
	for (unsigned i = 0; code == SENSE_NONE && request->all_ports && i < request->port_count;
	     i++) {
		if (request->ports[i] != request->from.port)
			code = register_on_port(state, request, request->ports[i], &changed);
	}
	state->persists = request->persists;
	if (changed)
		state->generation++;
	return code;
}

/* ---- RESERVE, RELEASE, CLEAR ---- */

static uint32_t apply_reserve(struct pr_state *state, const struct pr_request *request, int self)
{
	if (!pr_type_is_valid(request->type))
		return SENSE_INVALID_FIELD_IN_CDB;
	if (state->type == PR_NONE) {
		state->type = request->type;
		state->holder = (unsigned)self;
		return SENSE_NONE;
	}
	if (!pr_is_holder(state, (unsigned)self) || state->type != request->type)
		return PR_CONFLICT;
	return SENSE_NONE;
}

static uint32_t apply_release(struct pr_state *state, const struct pr_request *request, int self)
{
	if (!pr_is_holder(state, (unsigned)self))
		return SENSE_NONE;
	if (state->type != request->type)
		return SENSE_INVALID_RELEASE;
	if (pr_type_is_for_registrants(state->type))
		attention_to_others(state, self, SENSE_UA_RESERVATIONS_RELEASED);
	state->type = PR_NONE;
	return SENSE_NONE;
}

static uint32_t apply_clear(struct pr_state *state, int self)
{
	attention_to_others(state, self, SENSE_UA_RESERVATIONS_PREEMPTED);
	for (unsigned i = 0; i < state->count; i++)
		state->registrations[i].gone = true;
	state->type = PR_NONE;
	state->generation++;
	return SENSE_NONE;
}

/* ---- PREEMPT, PREEMPT AND ABORT ---- */

/* Takes the registrations with KEY, all when KEY is 0, but never that of EXCEPT (-1: nobody's). */
static bool preempt_registrations(struct pr_state *state, uint64_t key, int self, int except)
{
	bool any = false;

	for (unsigned i = 0; i < state->count; i++) {
		struct pr_registration *registration = &state->registrations[i];

		if ((int)i == except || (key != 0 && registration->key != key))
			continue;
		any = true;
		registration->gone = true;
		registration->preempted = true;
		if ((int)i != self)
			registration->attention = SENSE_UA_REGISTRATIONS_PREEMPTED;
	}
	return any;
}

/* 5.13.11.2.3: the key identifies the holder, whose reservation passes to the requester. */
static uint32_t preempt_reservation(struct pr_state *state, const struct pr_request *request,
				    int self)
{
	bool changes = state->type != request->type;
	/* The holder may preempt itself, to change the type, and keeps its registration. */
	bool of_self = pr_is_holder(state, (unsigned)self) && request->service_key != 0;

	if (!pr_type_is_valid(request->type))
		return SENSE_INVALID_FIELD_IN_CDB;
	preempt_registrations(state, request->service_key, self, self);
	state->registrations[self].preempted = of_self;
	state->type = request->type;
	state->holder = (unsigned)self;
	if (changes)
		attention_to_others(state, self, SENSE_UA_RESERVATIONS_RELEASED);
	state->generation++;
	return SENSE_NONE;
}

/* 5.13.11.2.4: otherwise only registrations go, the requester's own too if it has the key; scope
 * and type do not matter. */
static uint32_t preempt_only_registrations(struct pr_state *state, const struct pr_request *request,
					   int self)
{
	if (!preempt_registrations(state, request->service_key, self, -1))
		return PR_CONFLICT;
	if (pr_type_is_all_registrants(state->type) && !anyone_left(state))
		state->type = PR_NONE;
	state->generation++;
	return SENSE_NONE;
}

static uint32_t apply_preempt(struct pr_state *state, const struct pr_request *request, int self)
{
	bool all = pr_type_is_all_registrants(state->type);

	if (all && request->service_key == 0)
		return preempt_reservation(state, request, self);
	if (request->service_key == 0)
		return SENSE_INVALID_FIELD_IN_LIST;
	if (state->type != PR_NONE && !all &&
	    state->registrations[state->holder].key == request->service_key)
		return preempt_reservation(state, request, self);
	return preempt_only_registrations(state, request, self);
}

/* ---- REGISTER AND MOVE ---- */

static bool is_known_port(const struct pr_request *request, uint16_t port)
{
	for (unsigned i = 0; i < request->port_count; i++) {
		if (request->ports[i] == port)
			return true;
	}
	return false;
}

static uint32_t apply_move(struct pr_state *state, const struct pr_request *request, int self)
{
	const struct pr_initiator *to = request->initiators;
	struct pr_nexus nexus;
	int index;

	if (!pr_is_holder(state, (unsigned)self) || pr_type_is_all_registrants(state->type))
		return PR_CONFLICT;
	assert(request->initiator_count == 1);
	if (request->service_key == 0 || !is_known_port(request, request->move_to_port) ||
	    pr_is_same_initiator(to, &request->from))
		return SENSE_INVALID_FIELD_IN_LIST;
	nexus = (struct pr_nexus){to->name, to->isid, request->move_to_port,
				  pr_hash(to->name, to->isid, request->move_to_port)};
	index = pr_find(state, &nexus);
	if (index < 0) {
		uint32_t code = pr_add(state, to, request->move_to_port, request->service_key);

		if (code != SENSE_NONE)
			return code;
		index = (int)state->count - 1;
	}
	state->registrations[index].key = request->service_key;
	state->holder = (unsigned)index;
	if (request->leaves)
		state->registrations[self].gone = true;
	state->persists = request->persists;
	state->generation++;
	return SENSE_NONE;
}

uint32_t pr_apply(struct pr_state *state, const struct pr_request *request)
{
	int self;

	if (request->action == PR_REGISTER || request->action == PR_REGISTER_AND_IGNORE)
		return apply_register(state, request);
	self = pr_find(state, &request->from);
	if (self < 0 || state->registrations[self].key != request->key)
		return PR_CONFLICT;
	switch (request->action) {
	case PR_RESERVE:
		return apply_reserve(state, request, self);
	case PR_RELEASE:
		return apply_release(state, request, self);
	case PR_CLEAR:
		return apply_clear(state, self);
	case PR_PREEMPT:
	case PR_PREEMPT_AND_ABORT:
		return apply_preempt(state, request, self);
	case PR_REGISTER_AND_MOVE:
		return apply_move(state, request, self);
	case PR_REGISTER:
	case PR_REGISTER_AND_IGNORE:
		break;
	}
	return SENSE_INVALID_FIELD_IN_CDB;
}
