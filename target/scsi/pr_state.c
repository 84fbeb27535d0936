/* SPDX-License-Identifier: MIT
 *
 * Registrations: adding, finding, copying.
 */
#include "target/scsi/pr_state.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "base/bytes.h"
#include "target/scsi/sense.h"

/* FNV-1a.  iSCSI names do not differ by case (RFC 7143 4.2.7.2). */
uint32_t pr_hash(const char *name, const uint8_t isid[PR_ISID_BYTES], uint16_t port)
{
	uint32_t hash = 2166136261U;

	for (; *name; name++)
		hash = (hash ^ (uint32_t)tolower((unsigned char)*name)) * 16777619U;
	for (unsigned i = 0; i < PR_ISID_BYTES; i++)
		hash = (hash ^ isid[i]) * 16777619U;
	hash = (hash ^ (port & 0xffU)) * 16777619U;
	return (hash ^ (uint32_t)port >> 8) * 16777619U;
}

struct pr_state *pr_state_new(void)
{
	return calloc(1, sizeof(struct pr_state));
}

struct pr_state *pr_state_free(struct pr_state *state)
{
	if (!state)
		return NULL;
	free(state->registrations);
	free(state);
	return NULL;
}

static bool reserve_capacity(struct pr_state *state, unsigned count)
{
	unsigned capacity = MAX_OF(state->capacity, 8U);
	struct pr_registration *bigger;

	if (count <= state->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;
	bigger = realloc(state->registrations, capacity * sizeof *bigger);
	if (!bigger)
		return false;
	state->registrations = bigger;
	state->capacity = capacity;
	return true;
}

struct pr_state *pr_state_copy(const struct pr_state *state)
{
	struct pr_state *copy = pr_state_new();

	if (!copy)
		return NULL;
	*copy = *state;
	copy->registrations = NULL;
	copy->capacity = 0;
	if (!reserve_capacity(copy, state->count))
		return pr_state_free(copy);
	if (state->count > 0)
		memcpy(copy->registrations, state->registrations,
		       state->count * sizeof *state->registrations);
	return copy;
}

void pr_state_settle(struct pr_state *state)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < state->count; i++) {
		struct pr_registration *registration = &state->registrations[i];

		if (registration->gone)
			continue;
		registration->preempted = false;
		registration->attention = SENSE_NONE;
		if (state->holder == i)
			state->holder = kept;
		if (kept != i)
			state->registrations[kept] = *registration;
		kept++;
	}
	state->count = kept;
}

bool pr_is_same_initiator(const struct pr_initiator *initiator, const struct pr_nexus *nexus)
{
	return memcmp(initiator->isid, nexus->isid, PR_ISID_BYTES) == 0 &&
	       strcasecmp(initiator->name, nexus->name) == 0;
}

bool pr_is_of(const struct pr_registration *registration, const struct pr_nexus *nexus)
{
	return registration->hash == nexus->hash && registration->port == nexus->port &&
	       pr_is_same_initiator(&registration->initiator, nexus);
}

int pr_find(const struct pr_state *state, const struct pr_nexus *nexus)
{
	for (unsigned i = 0; i < state->count; i++) {
		const struct pr_registration *registration = &state->registrations[i];

		if (!registration->gone && pr_is_of(registration, nexus))
			return (int)i;
	}
	return -1;
}

uint32_t pr_add(struct pr_state *state, const struct pr_initiator *initiator, uint16_t port,
		uint64_t key)
{
	if (state->count >= PR_MAX_REGISTRATIONS || !reserve_capacity(state, state->count + 1))
		return SENSE_INSUFFICIENT_REGISTRATION;
	state->registrations[state->count++] = (struct pr_registration){
	    .initiator = *initiator,
	    .port = port,
	    .hash = pr_hash(initiator->name, initiator->isid, port),
	    .key = key,
	};
	return SENSE_NONE;
}
