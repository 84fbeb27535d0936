/* SPDX-License-Identifier: MIT
 *
 * The status document as text.
 */
#include "harness/cli/status_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"

enum { DRIVES_LISTED = 16, HOT_LISTED = 5, PLACES_LISTED = 5 };

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static bool is_true(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static bool is(const json_t *object, const char *key, const char *value)
{
	return strcmp(text_of(object, key), value) == 0;
}

static const char *bytes(char *out, size_t size, const json_t *object, const char *key)
{
	return text_bytes(out, size, (double)number_of(object, key));
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* "1 member degraded, 1 portal silent", or "everything is well". */
static void print_health(const json_t *status, FILE *to)
{
	static const struct {
		const char *list, *what, *well;
	} lists[] = {{"members", "member", "healthy"}, {"portals", "portal", "up"}};
	unsigned bad = 0;
	const json_t *one;
	size_t i;

	for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
		json_array_foreach(json_object_get(status, lists[l].list), i, one)
		{
			if (is(one, "state", lists[l].well))
				continue;
			fprintf(to, "%s%s %s %s", bad++ ? ", " : "", lists[l].what,
				text_of(one, lists[l].what), text_of(one, "state"));
		}
	}
	fprintf(to, "%s\n", bad ? "" : "everything is well");
}

/* ---- members ---- */

static void describe_drives(const json_t *member, char *out, size_t size)
{
	const json_t *drives = json_object_get(member, "drives"), *drive;
	unsigned spares = 0, out_of_order = 0;
	size_t i;
	int used;

	json_array_foreach(drives, i, drive)
	{
		spares += is(drive, "state", "spare");
		out_of_order += !is(drive, "state", "spare") && !is(drive, "state", "online");
	}
	used = snprintf(out, size, "%zu", json_array_size(drives));
	if (spares)
		used += snprintf(out + used, size - (size_t)used, ", %u spare", spares);
	if (out_of_order)
		snprintf(out + used, size - (size_t)used, ", %u out", out_of_order);
}

static void describe_controllers(const json_t *controllers, char *out, size_t size)
{
	const json_t *one;
	size_t i, used = 0;

	out[0] = '\0';
	json_array_foreach(controllers, i, one)
	{
		int wrote = snprintf(out + used, size - used, "%s%llu %s", i ? ", " : "",
				     (unsigned long long)number_of(one, "controller"),
				     text_of(one, "role"));

		if (wrote < 0 || (size_t)wrote >= size - used)
			return;
		used += (size_t)wrote;
	}
}

static void print_members(const json_t *status, FILE *to)
{
	const json_t *member;
	size_t i;

	fprintf(to, "\n%-12s %-12s %-7s %-18s %10s %7s  %s\n", "member", "state", "raid", "drives",
		"capacity", "used", "controllers");
	json_array_foreach(json_object_get(status, "members"), i, member)
	{
		const json_t *own = json_object_get(member, "controllers");
		char drives[48], controllers[64], capacity[32];

		describe_drives(member, drives, sizeof drives);
		describe_controllers(own ? own : json_object_get(status, "controllers"),
				     controllers, sizeof controllers);
		fprintf(to, "%-12s %-12s %-7s %-18s %10s %5.1f %%  %s\n", text_of(member, "member"),
			text_of(member, "state"), text_of(member, "raid"), drives,
			bytes(capacity, sizeof capacity, member, "total_bytes"),
			percent(number_of(member, "used_bytes"), number_of(member, "total_bytes")),
			controllers);
	}
}

static void print_rebuild(const json_t *rebuild, FILE *to)
{
	int64_t left_ns = json_integer_value(json_object_get(rebuild, "remaining_ns"));
	char rate[32], left[32];

	if (!is_true(rebuild, "running")) {
		if (number_of(rebuild, "waiting"))
			fprintf(to, "  rebuild    %llu waiting for a drive\n",
				(unsigned long long)number_of(rebuild, "waiting"));
		return;
	}
	fprintf(to, "  rebuild    slot %llu: %.1f %%, %s/s",
		(unsigned long long)number_of(rebuild, "slot"),
		json_real_value(json_object_get(rebuild, "percent")),
		bytes(rate, sizeof rate, rebuild, "bytes_per_s"));
	if (left_ns >= 0) {
		text_duration(left, sizeof left, (double)left_ns);
		fprintf(to, ", %s left", left);
	}
	if (number_of(rebuild, "waiting"))
		fprintf(to, ", %llu more waiting",
			(unsigned long long)number_of(rebuild, "waiting"));
	fprintf(to, "%s\n", is_true(rebuild, "paused") ? ", paused" : "");
}

static void print_scrub(const json_t *scrub, FILE *to)
{
	const json_t *place;
	size_t i;

	if (is_true(scrub, "running"))
		fprintf(to, "  scrub      %.1f %%%s",
			json_real_value(json_object_get(scrub, "percent")),
			is_true(scrub, "paused")    ? ", paused"
			: is_true(scrub, "waiting") ? ", waiting for the set to be whole"
						    : "");
	else if (number_of(scrub, "completed") || number_of(scrub, "units_checked"))
		fprintf(to, "  scrub      the last one checked %llu stripes",
			(unsigned long long)number_of(scrub, "units_checked"));
	else
		return;
	fprintf(to, ": %llu repaired, %llu inconsistent, %llu lost\n",
		(unsigned long long)number_of(scrub, "units_repaired"),
		(unsigned long long)number_of(scrub, "units_inconsistent"),
		(unsigned long long)number_of(scrub, "units_lost"));
	json_array_foreach(json_object_get(scrub, "places"), i, place)
	{
		if (i == PLACES_LISTED) {
			fprintf(to, "               and more, see --json\n");
			break;
		}
		fprintf(to, "               at %llu: %s\n",
			(unsigned long long)number_of(place, "offset_bytes"),
			is_true(place, "lost")		 ? "lost"
			: is_true(place, "inconsistent") ? "inconsistent, repaired"
							 : "repaired");
	}
}

static void print_cache(const json_t *cache, FILE *to)
{
	uint64_t hits = number_of(cache, "read_hits");
	uint64_t reads =
	    hits + number_of(cache, "read_partial_hits") + number_of(cache, "read_misses");
	char size[32];

	if (!cache)
		return;
	fprintf(to, "  cache      %s", text_of(cache, "mode"));
	if (!is(cache, "mode", text_of(cache, "configured_mode")))
		fprintf(to, " (%s)", text_of(cache, "why"));
	fprintf(to, ", %s, %.1f %% dirty, %.1f %% of the reads hit\n",
		bytes(size, sizeof size, cache, "size_bytes"),
		percent(number_of(cache, "dirty_bytes"), number_of(cache, "size_bytes")),
		percent(hits, reads));
}

static void print_ssd(const json_t *ssd, FILE *to)
{
	uint64_t hits = number_of(ssd, "read_hits");
	char cached[32];

	if (ssd)
		fprintf(to, "  SSD cache  %s cached, %.1f %% of the reads hit\n",
			bytes(cached, sizeof cached, ssd, "cached_bytes"),
			percent(hits, hits + number_of(ssd, "read_misses")));
}

static void print_drain(const json_t *drain, FILE *to)
{
	char left[32], moved[32];

	if (drain && !is(drain, "state", "none"))
		fprintf(to, "  drain      %s, %s left, %s moved%s%s\n", text_of(drain, "state"),
			bytes(left, sizeof left, drain, "left_bytes"),
			bytes(moved, sizeof moved, drain, "moved_bytes"),
			text_of(drain, "why")[0] ? ": " : "", text_of(drain, "why"));
}

static void print_drives(const json_t *drives, FILE *to)
{
	unsigned listed = 0;
	const json_t *drive;
	size_t i;

	json_array_foreach(drives, i, drive)
	{
		bool faulty = text_of(drive, "fault")[0];

		if (is(drive, "state", "online") && !faulty)
			continue;
		if (listed++ == DRIVES_LISTED) {
			fprintf(to, "               and more, see --json\n");
			return;
		}
		fprintf(to, "  drive %-4llu %s", (unsigned long long)number_of(drive, "number"),
			text_of(drive, "state"));
		if (json_integer_value(json_object_get(drive, "slot")) >= 0 &&
		    !is(drive, "state", "online"))
			fprintf(to, ", slot %llu", (unsigned long long)number_of(drive, "slot"));
		fprintf(to, "%s%s\n", faulty ? ", " : "", text_of(drive, "fault"));
	}
}

static void print_details(const json_t *status, FILE *to)
{
	const json_t *member;
	size_t i;

	json_array_foreach(json_object_get(status, "members"), i, member)
	{
		fprintf(to, "\n%s\n", text_of(member, "member"));
		print_rebuild(json_object_get(member, "rebuild"), to);
		print_scrub(json_object_get(member, "scrub"), to);
		print_cache(json_object_get(member, "cache"), to);
		print_ssd(json_object_get(member, "ssd_cache"), to);
		print_drain(json_object_get(member, "drain"), to);
		print_drives(json_object_get(member, "drives"), to);
	}
}

/* ---- pools, volumes, portals ---- */

static void print_pools(const json_t *status, FILE *to)
{
	const json_t *pools = json_object_get(status, "pools"), *pool, *page;
	char total[32], used[32], subscribed[32];
	size_t i, h;

	if (!pools)
		return;
	fprintf(to, "\n%-12s %10s %10s %7s %12s\n", "pool", "capacity", "used", "", "subscribed");
	json_array_foreach(pools, i, pool)
	{
		fprintf(to, "%-12s %10s %10s %5.1f %% %12s\n", text_of(pool, "pool"),
			bytes(total, sizeof total, pool, "total_bytes"),
			bytes(used, sizeof used, pool, "used_bytes"),
			percent(number_of(pool, "used_bytes"), number_of(pool, "total_bytes")),
			bytes(subscribed, sizeof subscribed, pool, "subscribed_bytes"));
		if (text_of(pool, "performance_decision")[0])
			fprintf(to, "  balancer   %s\n", text_of(pool, "performance_decision"));
		json_array_foreach(json_object_get(pool, "hot_pages"), h, page)
		{
			if (h == HOT_LISTED)
				break;
			fprintf(
			    to, "  hot page   %s at %s on %s: %llu requests\n",
			    text_of(page, "volume"), bytes(used, sizeof used, page, "offset_bytes"),
			    text_of(page, "member"), (unsigned long long)number_of(page, "heat"));
		}
	}
}

static void print_volumes(const json_t *status, FILE *to)
{
	const json_t *volume;
	size_t i;

	fprintf(to, "\n%-16s %10s %10s %12s %12s %8s %7s\n", "volume", "size", "allocated", "reads",
		"writes", "heat", "errors");
	json_array_foreach(json_object_get(status, "volumes"), i, volume)
	{
		char size[32], allocated[32];

		fprintf(to, "%-16s %10s %10s %12llu %12llu %8llu %7llu\n",
			text_of(volume, "volume"), bytes(size, sizeof size, volume, "size_bytes"),
			bytes(allocated, sizeof allocated, volume, "allocated_bytes"),
			(unsigned long long)number_of(volume, "reads"),
			(unsigned long long)number_of(volume, "writes"),
			(unsigned long long)number_of(volume, "heat"),
			(unsigned long long)number_of(volume, "errors"));
	}
}

static void print_portals(const json_t *status, FILE *to)
{
	const json_t *portal;
	size_t i;

	fprintf(to, "\n%-22s %-10s %-9s %11s %12s %12s\n", "portal", "of", "state", "connections",
		"reads", "writes");
	json_array_foreach(json_object_get(status, "portals"), i, portal)
	{
		fprintf(to, "%-22s %-10s %-9s %11llu %12llu %12llu\n", text_of(portal, "portal"),
			text_of(portal, "owner"), text_of(portal, "state"),
			(unsigned long long)number_of(portal, "connections_now"),
			(unsigned long long)number_of(portal, "reads"),
			(unsigned long long)number_of(portal, "writes"));
	}
}

void status_text(const json_t *status, FILE *to)
{
	fprintf(to, "%s, style %s: ", text_of(status, "lab"), text_of(status, "style"));
	print_health(status, to);
	print_members(status, to);
	print_details(status, to);
	print_pools(status, to);
	print_volumes(status, to);
	print_portals(status, to);
}
