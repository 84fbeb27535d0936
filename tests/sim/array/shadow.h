/* SPDX-License-Identifier: MIT
 *
 * The oracle of a simulated volume: which contents each sector may have.
 *
 * Every write has a number, and each of its sectors a content made from that number and the
 * sector's own, so that what a read finds says which write it came from and whether it lies where
 * it belongs.  Number 0 is what was never written or was unmapped: zeros.
 *
 * A sector has one content in general; several while nobody can know: after a request that failed
 * or that a crash cut off, and, where a crash loses what was not flushed, until the next flush.
 * What a read then finds is the content from that moment on.
 */
#ifndef SANLAB_TESTS_SIM_SHADOW_H
#define SANLAB_TESTS_SIM_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

enum { SECTOR_BYTES = 512, SHADOW_MAX = 6 };

struct shadow_set {
	uint32_t id[SHADOW_MAX];
	uint8_t count; /* 0 of `now`: nothing ever happened there */
	bool wild;     /* more than fit: any that belongs there */
};

struct shadow_sector {
	struct shadow_set now;	/* what a read may find */
	struct shadow_set past; /* what a loss of power may bring back besides */
	uint64_t stamp;		/* of the last change: a later flush makes `past` impossible */
};

struct shadow {
	struct shadow_sector *sectors;
	uint8_t *touched;	  /* a byte a block of sectors: others are as they were made */
	uint64_t count, capacity; /* sectors */
	uint64_t stamp, flushed;
	/* What may yet take place at any time, until a later write is acknowledged: a read settles
	 * nothing of that.  NULL: nothing does. */
	struct shadow_set *late;
};

struct shadow_fault {
	uint64_t sector;
	char text[200];
};

/* The memory of one that is done is used again. */
bool shadow_init(struct shadow *shadow, uint64_t bytes);
void shadow_done(struct shadow *shadow);
void shadow_fill(uint8_t *data, uint64_t sector, uint64_t count, uint32_t id);
/* The request that makes the content ID was acknowledged; STABLE: and is on stable storage. */
void shadow_acknowledged(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id,
			 bool stable);
/* It may or may not have taken place. */
void shadow_uncertain(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id);
/* Requests that overlap may take place in any order: besides what was acknowledged last the
 * content may be ID. */
void shadow_possible(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id);
/* A request that failed may yet take place. */
bool shadow_expect_late(struct shadow *shadow); /* first of all; false: no memory */
void shadow_may_come(struct shadow *shadow, uint64_t sector, uint64_t count, uint32_t id);
/* A flush that was submitted when the shadow's stamp was STAMP was acknowledged. */
void shadow_flushed(struct shadow *shadow, uint64_t stamp);
/* What was not on stable storage may be lost. */
void shadow_power_lost(struct shadow *shadow);
/* Does DATA, read from there, fit?  Settles what was open. */
bool shadow_check(struct shadow *shadow, uint64_t sector, uint64_t count, const uint8_t *data,
		  struct shadow_fault *ret_fault);

#endif
