/* SPDX-License-Identifier: MIT
 *
 * The command window of a session (RFC 7143 4.2.2.1): ExpCmdSN is the next number expected in
 * order, MaxCmdSN the last one the initiator may use.
 *
 * Each command that was taken and not yet answered occupies one place, so
 * MaxCmdSN = ExpCmdSN - 1 + (size - occupied): it never decreases, because whatever takes a place
 * also advances ExpCmdSN.  All comparisons are serial number arithmetic (RFC 1982).
 */
#ifndef SANLAB_TARGET_ISCSI_WINDOW_H
#define SANLAB_TARGET_ISCSI_WINDOW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct iscsi_window {
	uint32_t exp_cmd_sn;
	uint32_t size;
	uint32_t occupied;
};

enum iscsi_window_place {
	WINDOW_OUTSIDE, /* duplicate or beyond: drop silently */
	WINDOW_NEXT,	/* the one expected */
	WINDOW_AHEAD,	/* inside, but an earlier one is missing: hold */
};

static inline bool serial_less(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline void iscsi_window_init(struct iscsi_window *window, uint32_t cmd_sn, uint32_t size)
{
	*window = (struct iscsi_window){.exp_cmd_sn = cmd_sn, .size = size};
}

static inline uint32_t iscsi_window_max(const struct iscsi_window *window)
{
	return window->exp_cmd_sn - 1 + (window->size - window->occupied);
}

static inline enum iscsi_window_place iscsi_window_place(const struct iscsi_window *window,
							 uint32_t cmd_sn)
{
	if (serial_less(cmd_sn, window->exp_cmd_sn) ||
	    serial_less(iscsi_window_max(window), cmd_sn))
		return WINDOW_OUTSIDE;
	return cmd_sn == window->exp_cmd_sn ? WINDOW_NEXT : WINDOW_AHEAD;
}

/* The expected number has come; OCCUPY when what it numbers is answered later. */
static inline void iscsi_window_advance(struct iscsi_window *window, bool occupy)
{
	window->exp_cmd_sn++;
	if (occupy) {
		assert(window->occupied < window->size);
		window->occupied++;
	}
}

static inline void iscsi_window_leave(struct iscsi_window *window)
{
	assert(window->occupied > 0);
	window->occupied--;
}

#endif
