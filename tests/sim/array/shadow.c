/* SPDX-License-Identifier: MIT
 *
 * The oracle of a simulated volume.
 */
#include "tests/sim/array/shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = SECTOR_BYTES / 8, BLOCK_SECTORS = 128, SPARES = 2 };

/* ---- memory ---- */

static struct shadow spares[SPARES]; /* untouched ones */

static uint64_t block_count(const struct shadow *shadow)
{
	return (shadow->count + BLOCK_SECTORS - 1) / BLOCK_SECTORS;
}

bool shadow_init(struct shadow *shadow, uint64_t bytes)
{
	uint64_t count = bytes / SECTOR_BYTES;

	for (unsigned i = 0; i < SPARES; i++)
		if (spares[i].capacity >= count) {
			*shadow = spares[i];
			shadow->count = count;
			spares[i] = (struct shadow){.capacity = 0};
			return true;
		}
	*shadow = (struct shadow){.count = count, .capacity = count};
	shadow->sectors = calloc(count, sizeof *shadow->sectors);
	shadow->touched = calloc(block_count(shadow), 1);
	return shadow->sectors && shadow->touched;
}

/* Of the sectors of BLOCK. */
static uint64_t block_end(const struct shadow *shadow, uint64_t block)
{
	uint64_t end = (block + 1) * BLOCK_SECTORS;
	return end < shadow->count ? end : shadow->count;
}

void shadow_done(struct shadow *shadow)
{
	struct shadow *spare = &spares[0];

	free(shadow->late);
	for (uint64_t block = 0; shadow->count && block < block_count(shadow); block++) {
		uint64_t first = block * BLOCK_SECTORS;
		if (shadow->touched[block])
			memset(&shadow->sectors[first], 0,
			       (block_end(shadow, block) - first) * sizeof *shadow->sectors);
		shadow->touched[block] = 0;
	}
	for (unsigned i = 1; i < SPARES; i++)
		if (spares[i].capacity < spare->capacity)
			spare = &spares[i];
	if (spare->capacity < shadow->capacity) { /* the larger one is kept */
		struct shadow kept = *spare;
		*spare = (struct shadow){
		    .sectors = shadow->sectors,
		    .touched = shadow->touched,
		    .capacity = shadow->capacity,
		};
		*shadow = kept;
	}
	free(shadow->sectors);
	free(shadow->touched);
	*shadow = (struct shadow){.count = 0};
}

static struct shadow_sector *sector_at(struct shadow *shadow, uint64_t sector)
{
	struct shadow_sector *at = &shadow->sectors[sector];

	shadow->touched[sector / BLOCK_SECTORS] = 1;
	if (at->now.count == 0)
		at->now.count = 1; /* zeros */
	return at;
}

/* ---- contents ---- */

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return value ^ value >> 32;
}

/* The first word tells the number and the sector to whoever reads a dump. */
static uint64_t word_of(uint64_t sector, uint32_t id, unsigned word)
{
	uint64_t name = (uint64_t)id << 32 | (uint32_t)sector;
	return word == 0 ? name : mix(name + ((uint64_t)word << 56));
}

static void sector_fill(uint8_t *data, uint64_t sector, uint32_t id)
{
	if (id == 0) {
		memset(data, 0, SECTOR_BYTES);
		return;
	}
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t word = word_of(sector, id, i);
		memcpy(data + i * 8, &word, 8);
	}
}

void shadow_fill(uint8_t *data, uint64_t sector, uint64_t count, uint32_t id)
{
	for (uint64_t i = 0; i < count; i++)
		sector_fill(data + i * SECTOR_BYTES, sector + i, id);
}

/* ---- what may be there ---- */

static bool has(const struct shadow_set *set, uint32_t id)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->id[i] == id)
			return true;
	return false;
}

static void add(struct shadow_set *set, uint32_t id)
{
	if (has(set, id))
		return;
	if (set->count < SHADOW_MAX)
		set->id[set->count++] = id;
	else
		set->wild = true;
}

static void add_all(struct shadow_set *set, const struct shadow_set *more)
{
	set->wild = set->wild || more->wild;
	for (unsigned i = 0; i < more->count; i++)
		add(set, more->id[i]);
}

static struct shadow_set only(uint32_t id)
{
	return (struct shadow_set){.id = {id}, .count = 1};
}

/* What was possible so far is the past. */
static void supersede(struct shadow *shadow, struct shadow_sector *at)
{
	if (at->stamp <= shadow->flushed)
		at->past = (struct shadow_set){.count = 0};
	add_all(&at->past, &at->now);
	at->stamp = shadow->stamp;
}

void shadow_acknowledged(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id,
			 bool stable)
{
	shadow->stamp++;
	for (uint64_t i = sector; i < sector + count; i++) {
		struct shadow_sector *at = sector_at(shadow, i);
		supersede(shadow, at);
		if (stable)
			at->past = (struct shadow_set){.count = 0};
		at->now = only(id);
		if (shadow->late)
			shadow->late[i] = (struct shadow_set){.count = 0};
	}
}

void shadow_possible(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id)
{
	for (uint64_t i = sector; i < sector + count; i++)
		add(&sector_at(shadow, i)->now, id);
}

bool shadow_expect_late(struct shadow *shadow)
{
	shadow->late = calloc(shadow->count, sizeof *shadow->late);
	return shadow->late != NULL;
}

void shadow_may_come(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id)
{
	for (uint64_t i = sector; i < sector + count; i++)
		add(&shadow->late[i], id);
}

void shadow_uncertain(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id)
{
	shadow->stamp++;
	for (uint64_t i = sector; i < sector + count; i++)
		add(&sector_at(shadow, i)->now, id);
}

void shadow_flushed(struct shadow *shadow, uint64_t stamp)
{
	if (stamp > shadow->flushed)
		shadow->flushed = stamp;
}

void shadow_power_lost(struct shadow *shadow)
{
	for (uint64_t block = 0; block < block_count(shadow); block++) {
		uint64_t i = block * BLOCK_SECTORS, end = block_end(shadow, block);
		for (; shadow->touched[block] && i < end; i++) {
			struct shadow_sector *at = sector_at(shadow, i);
			if (at->stamp > shadow->flushed)
				add_all(&at->now, &at->past);
			at->past = (struct shadow_set){.count = 0};
		}
	}
}

/* ---- reads ---- */

static bool is_content(const uint8_t *data, uint64_t sector, uint32_t id)
{
	uint8_t expected[SECTOR_BYTES];
	sector_fill(expected, sector, id);
	return memcmp(data, expected, SECTOR_BYTES) == 0;
}

/* The member of SET that DATA is; -1: none. */
static int find(const struct shadow_set *set, uint64_t sector, const uint8_t *data)
{
	for (int i = set->count; i > 0; i--)
		if (is_content(data, sector, set->id[i - 1]))
			return i - 1;
	return -1;
}

static bool settle(struct shadow *shadow, struct shadow_sector *at, uint64_t sector,
		   const uint8_t *data)
{
	const struct shadow_set *late = shadow->late ? &shadow->late[sector] : NULL;
	int i = find(&at->now, sector, data);
	uint64_t name;

	if (i >= 0) {
		uint32_t id = at->now.id[i];
		if (at->now.count > 1) {
			supersede(shadow, at);
			at->now = only(id);
		}
		return true;
	}
	i = late ? find(late, sector, data) : -1;
	if (i >= 0) {
		at->now = only(late->id[i]);
		return true;
	}
	memcpy(&name, data, 8);
	return (at->now.wild || (late && late->wild)) &&
	       is_content(data, sector, (uint32_t)(name >> 32));
}

static void describe(const struct shadow_sector *at, uint64_t sector, const uint8_t *data,
		     struct shadow_fault *fault)
{
	uint64_t name;
	char wanted[80] = "";
	memcpy(&name, data, 8);
	uint32_t id = (uint32_t)(name >> 32), place = (uint32_t)name;
	const char *what = is_content(data, sector, 0)	  ? "zeros"
			   : is_content(data, sector, id) ? "an older write"
			   : is_content(data, place, id)  ? "another sector's content"
							  : "garbage";
	for (unsigned i = 0; i < at->now.count; i++) {
		size_t used = strlen(wanted);
		snprintf(wanted + used, sizeof wanted - used, " %u", at->now.id[i]);
	}
	fault->sector = sector;
	snprintf(fault->text, sizeof fault->text,
		 "sector %llu has %s (write %u, sector %u), expected of write%s",
		 (unsigned long long)sector, what, id, place, wanted);
}

bool shadow_check(struct shadow *shadow, uint64_t sector, uint64_t count, const uint8_t *data,
		  struct shadow_fault *ret_fault)
{
	for (uint64_t i = 0; i < count; i++) {
		struct shadow_sector *at = sector_at(shadow, sector + i);
		if (settle(shadow, at, sector + i, data + i * SECTOR_BYTES))
			continue;
		describe(at, sector + i, data + i * SECTOR_BYTES, ret_fault);
		return false;
	}
	return true;
}
