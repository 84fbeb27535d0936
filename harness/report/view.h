/* SPDX-License-Identifier: MIT
 *
 * What every writer wants from a record but the record does not hold: streams gathered by kind,
 * paths gathered by host and portal, rates over the measured window, the headline.
 * Ownership: the view owns its tables and borrows all strings from the record, which must
 * outlive it.
 */
#ifndef SANLAB_HARNESS_REPORT_VIEW_H
#define SANLAB_HARNESS_REPORT_VIEW_H

#include "harness/report/record.h"

/* All streams of one name, whatever their volume. */
struct view_kind {
	const char *name;
	bool write;
	unsigned streams;
	double planned_per_s;
	uint64_t ios, bytes, errors, max_gap_ns;
	struct hist response, service;
};

/* All paths of one host through one portal, whatever their volume. */
struct view_portal {
	const char *host, *portal;
	unsigned paths, paths_up;
	uint64_t ios, bytes, errors, reissued, losses, logins;
	double share;		     /* of the host's I/Os */
	double share_min, share_max; /* of the single paths, each of its volume's I/Os */
	char state[48];		     /* "up", or "4 up, 1 down" */
	struct hist latency;
};

struct view {
	const struct record *record;
	double window_s; /* 0: nothing was measured */
	struct view_kind *kinds;
	unsigned kind_count;
	struct view_portal *portals;
	unsigned portal_count;
	unsigned *kind_of_stream; /* stream_count */
	unsigned *portal_of_path; /* path_count */
	uint64_t ios, bytes, errors, reissued, losses, max_gap_ns;
	unsigned verdicts[3]; /* by enum verdict_status */
};

int view_new(const struct record *record, struct view **ret_view); /* 0 or -ENOMEM */
struct view *view_free(struct view *view);

/* COUNT per second of the measured window; NaN when there was none. */
double view_rate(const struct view *view, double count);
/* "FAIL: 1 of 9 checks failed: database read latency 31 ms (limit 20 ms)" without the word. */
void view_headline(const struct view *view, char *out, size_t size);
const char *view_result(const struct record *record); /* "PASS" or "FAIL" */
/* Sum of one kind's I/Os etc. is in kinds; all reads or all writes gathered: */
void view_latency(const struct view *view, bool write, struct hist *ret_response);

#endif
