/* SPDX-License-Identifier: MIT
 *
 * Streams by kind, paths by portal, rates and the headline.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"
#include "harness/report/view.h"

static const char *text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static bool same(const char *a, const char *b)
{
	return strcmp(text_or(a, ""), text_or(b, "")) == 0;
}

static void kind_add(struct view *view, unsigned index)
{
	const struct record_stream *stream = &view->record->streams[index];
	struct view_kind *kind;
	unsigned k = 0;

	while (k < view->kind_count &&
	       !(same(view->kinds[k].name, stream->name) && view->kinds[k].write == stream->write))
		k++;
	kind = &view->kinds[k];
	if (k == view->kind_count) {
		view->kind_count++;
		kind->name = text_or(stream->name, "");
		kind->write = stream->write;
	}
	view->kind_of_stream[index] = k;
	kind->streams++;
	kind->planned_per_s += stream->planned_per_s;
	kind->ios += stream->ios;
	kind->bytes += stream->bytes;
	kind->errors += stream->errors;
	kind->max_gap_ns = MAX_OF(kind->max_gap_ns, stream->max_gap_ns);
	hist_merge(&kind->response, &stream->response);
	hist_merge(&kind->service, &stream->service);

	view->ios += stream->ios;
	view->bytes += stream->bytes;
	view->errors += stream->errors;
	view->max_gap_ns = MAX_OF(view->max_gap_ns, stream->max_gap_ns);
}

static void portal_add(struct view *view, unsigned index)
{
	const struct record_path *path = &view->record->paths[index];
	struct view_portal *portal;
	unsigned p = 0;

	while (p < view->portal_count && !(same(view->portals[p].host, path->host) &&
					   same(view->portals[p].portal, path->portal)))
		p++;
	portal = &view->portals[p];
	if (p == view->portal_count) {
		view->portal_count++;
		portal->host = text_or(path->host, "");
		portal->portal = text_or(path->portal, "");
		portal->share_min = portal->share_max = path->share;
		snprintf(portal->state, sizeof portal->state, "%s", text_or(path->state, "-"));
	} else if (strcmp(portal->state, text_or(path->state, "-")) != 0) {
		portal->state[0] = '\0'; /* mixed: counted below */
	}
	view->portal_of_path[index] = p;
	portal->paths++;
	portal->paths_up += same(path->state, "up");
	portal->ios += path->ios;
	portal->bytes += path->read_bytes + path->write_bytes;
	portal->errors += path->errors;
	portal->reissued += path->reissued;
	portal->losses += path->losses;
	portal->logins += path->logins;
	portal->share_min = fmin(portal->share_min, path->share);
	portal->share_max = fmax(portal->share_max, path->share);
	hist_merge(&portal->latency, &path->latency);
	view->reissued += path->reissued;
	view->losses += path->losses;
}

static void portals_finish(struct view *view)
{
	for (unsigned p = 0; p < view->portal_count; p++) {
		struct view_portal *portal = &view->portals[p];
		uint64_t total = 0;

		for (unsigned i = 0; i < view->portal_count; i++) {
			if (same(view->portals[i].host, portal->host))
				total += view->portals[i].ios;
		}
		portal->share = total ? (double)portal->ios / (double)total : NAN;
		if (!portal->state[0])
			snprintf(portal->state, sizeof portal->state, "%u up, %u not",
				 portal->paths_up, portal->paths - portal->paths_up);
	}
}

int view_new(const struct record *record, struct view **ret_view)
{
	struct view *view = calloc(1, sizeof *view);

	if (!view)
		return -ENOMEM;
	view->record = record;
	/* As many kinds as streams at most; pages of kinds that do not exist stay untouched. */
	view->kinds = calloc(record->stream_count + 1U, sizeof *view->kinds);
	view->portals = calloc(record->path_count + 1U, sizeof *view->portals);
	view->kind_of_stream = calloc(record->stream_count + 1U, sizeof *view->kind_of_stream);
	view->portal_of_path = calloc(record->path_count + 1U, sizeof *view->portal_of_path);
	if (!view->kinds || !view->portals || !view->kind_of_stream || !view->portal_of_path) {
		view_free(view);
		return -ENOMEM;
	}
	if (record->window_end_ns > record->window_start_ns)
		view->window_s =
		    (double)(record->window_end_ns - record->window_start_ns) / (double)NS_PER_S;
	for (unsigned i = 0; i < record->stream_count; i++)
		kind_add(view, i);
	for (unsigned i = 0; i < record->path_count; i++)
		portal_add(view, i);
	portals_finish(view);
	for (unsigned i = 0; i < record->verdict_count; i++)
		view->verdicts[record->verdicts[i].status]++;
	*ret_view = view;
	return 0;
}

struct view *view_free(struct view *view)
{
	if (!view)
		return NULL;
	free(view->kinds);
	free(view->portals);
	free(view->kind_of_stream);
	free(view->portal_of_path);
	free(view);
	return NULL;
}

double view_rate(const struct view *view, double count)
{
	return view->window_s > 0 ? count / view->window_s : NAN;
}

const char *view_result(const struct record *record)
{
	return record_passed(record) ? "PASS" : "FAIL";
}

static const struct record_verdict *first_failure(const struct record *record)
{
	for (unsigned i = 0; i < record->verdict_count; i++) {
		if (record->verdicts[i].status == VERDICT_FAIL)
			return &record->verdicts[i];
	}
	return NULL;
}

void view_headline(const struct view *view, char *out, size_t size)
{
	const struct record *record = view->record;
	const struct record_verdict *failure = first_failure(record);
	unsigned judged = view->verdicts[VERDICT_PASS] + view->verdicts[VERDICT_FAIL];
	char achieved[32], planned[32], skipped[32] = "";

	if (view->verdicts[VERDICT_SKIP])
		snprintf(skipped, sizeof skipped, ", %u skipped", view->verdicts[VERDICT_SKIP]);
	if (record->error) {
		snprintf(out, size, "the run ended early: %s", record->error);
	} else if (failure) {
		snprintf(out, size, "%u of %u checks failed%s: %s", view->verdicts[VERDICT_FAIL],
			 judged, skipped, text_or(failure->text, text_or(failure->id, "")));
	} else if (!judged) {
		snprintf(out, size, "nothing was checked%s", skipped);
	} else if (record->planned_transactional_iops > 0) {
		snprintf(
		    out, size, "%u of %u checks passed%s; %s of %s planned IOPS", judged, judged,
		    skipped,
		    format_real(achieved, sizeof achieved, record->achieved_transactional_iops),
		    format_real(planned, sizeof planned, record->planned_transactional_iops));
	} else {
		snprintf(out, size, "%u of %u checks passed%s; %s IOPS", judged, judged, skipped,
			 format_real(achieved, sizeof achieved, record->total_iops));
	}
	if (record->interrupted) {
		size_t used = strlen(out);

		snprintf(out + used, size - used, " (interrupted)");
	}
}

void view_latency(const struct view *view, bool write, struct hist *ret_response)
{
	hist_reset(ret_response);
	for (unsigned k = 0; k < view->kind_count; k++) {
		if (view->kinds[k].write == write)
			hist_merge(ret_response, &view->kinds[k].response);
	}
}
