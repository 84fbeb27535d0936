/* SPDX-License-Identifier: MIT
 *
 * What became of a trace (record->replay, whose shape is in workload/replay.h), as a section of the
 * summary and of report.html.  It may come from a file: what is missing counts as nothing.
 */
#include "harness/report/replay_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/format.h"
#include "harness/report/sheet.h"

enum { DEVICES_MAX = 64 };

static uint64_t count_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void fact(struct sheet *sheet, const char *name, uint64_t count)
{
	char text[32];

	if (!count)
		return;
	sheet_row(sheet);
	sheet_cell(sheet, "%s", name);
	sheet_cell(sheet, "%s", format_count(text, sizeof text, count));
}

static int put_facts(const json_t *replay, bool html, FILE *to)
{
	const json_t *trace = json_object_get(replay, "trace");
	const json_t *left_out = json_object_get(replay, "left_out");
	const json_t *changed = json_object_get(replay, "changed");
	const json_t *verified = json_object_get(replay, "verified");
	char title[200];
	struct sheet sheet;

	snprintf(title, sizeof title, "Replay of a trace (%.20s, %.20s)", text_of(replay, "format"),
		 text_of(replay, "mode"));
	sheet_begin(&sheet, title, "of the trace|>count");
	fact(&sheet, "I/Os sent", count_of(replay, "sent"));
	fact(&sheet, "whole passes", count_of(replay, "passes"));
	fact(&sheet, "lines read", count_of(trace, "lines"));
	fact(&sheet, "records in them", count_of(trace, "records"));
	fact(&sheet, "malformed lines left out", count_of(trace, "malformed_lines"));
	fact(&sheet, "records that came too late to be put in order",
	     count_of(trace, "out_of_order"));
	fact(&sheet, "left out: no `map` for the device", count_of(left_out, "unmapped"));
	fact(&sheet, "left out: beyond the end", count_of(left_out, "beyond_the_end"));
	fact(&sheet, "left out: trims, which the unit does not know",
	     count_of(left_out, "trims_unsupported"));
	fact(&sheet, "folded back into their region", count_of(changed, "wrapped"));
	fact(&sheet, "widened to whole blocks", count_of(changed, "rounded"));
	fact(&sheet, "further parts of large or striped I/Os", count_of(changed, "parts"));
	fact(&sheet, "reads checked", count_of(verified, "reads_checked"));
	fact(&sheet, "reads of which nothing is known", count_of(verified, "reads_unchecked"));
	return sheet_put(&sheet, "nothing was sent", html, to);
}

static int put_lateness(const json_t *replay, bool html, FILE *to)
{
	const json_t *lateness = json_object_get(replay, "lateness"), *bucket;
	uint64_t ios = count_of(lateness, "ios");
	char title[200], text[3][32];
	struct sheet sheet;
	size_t i;

	if (!ios)
		return 0;
	snprintf(title, sizeof title, "Lateness (mean %s, p99 %s, max %s)",
		 text_duration(text[0], sizeof text[0], (double)count_of(lateness, "mean_ns")),
		 text_duration(text[1], sizeof text[1], (double)count_of(lateness, "p99_ns")),
		 text_duration(text[2], sizeof text[2], (double)count_of(lateness, "max_ns")));
	sheet_begin(&sheet, title, "sent late by|>I/Os|>share");
	json_array_foreach(json_object_get(lateness, "buckets"), i, bucket)
	{
		uint64_t here = count_of(bucket, "ios"), edge = count_of(bucket, "up_to_ns");

		if (!here)
			continue;
		sheet_row(&sheet);
		if (edge)
			sheet_cell(&sheet, "up to %s",
				   text_duration(text[0], sizeof text[0], (double)edge));
		else
			sheet_cell(&sheet, "more");
		sheet_cell(&sheet, "%s", format_count(text[1], sizeof text[1], here));
		sheet_cell(&sheet, "%s",
			   format_share(text[2], sizeof text[2], (double)here / (double)ios));
	}
	return sheet_put(&sheet, "nothing had an instant to be sent at", html, to);
}

static void volumes_of(const json_t *device, char *out, size_t size)
{
	const json_t *volumes = json_object_get(device, "volumes"), *volume;
	size_t i, used = 0;

	*out = '\0';
	json_array_foreach(volumes, i, volume)
	{
		const char *name = json_string_value(volume);

		used += (size_t)snprintf(out + used, size - used, "%s%.60s", i ? ", " : "",
					 name ? name : "");
		if (used >= size - 1)
			return;
	}
	if (!used)
		snprintf(out, size, "(left out)");
}

static int put_devices(const json_t *replay, bool html, FILE *to)
{
	const json_t *devices = json_object_get(replay, "devices"), *device;
	struct sheet sheet;
	size_t i;

	sheet_begin(&sheet, "Devices of the trace", "device|volumes|>I/Os|>size");
	json_array_foreach(devices, i, device)
	{
		char volumes[200], ios[32], bytes[32];

		if (i == DEVICES_MAX)
			break;
		volumes_of(device, volumes, sizeof volumes);
		sheet_row(&sheet);
		sheet_cell(&sheet, "%.100s", text_of(device, "trace"));
		sheet_cell(&sheet, "%s", volumes);
		sheet_cell(&sheet, "%s", format_count(ios, sizeof ios, count_of(device, "ios")));
		sheet_cell(&sheet, "%s",
			   text_bytes(bytes, sizeof bytes, (double)count_of(device, "bytes")));
	}
	return sheet_put(&sheet, "none", html, to);
}

static int put_malformed(const json_t *replay, bool html, FILE *to)
{
	const json_t *lines = json_object_get(json_object_get(replay, "trace"), "malformed"), *line;
	struct sheet sheet;
	size_t i;

	if (!json_array_size(lines))
		return 0;
	sheet_begin(&sheet, "The first malformed lines", NULL);
	json_array_foreach(lines, i, line)
	{
		sheet_row(&sheet);
		sheet_cell(&sheet, "%.300s",
			   json_string_value(line) ? json_string_value(line) : "");
	}
	return sheet_put(&sheet, "none", html, to);
}

int replay_report(const struct record *record, bool html, FILE *to)
{
	static int (*const parts[])(const json_t *replay, bool html, FILE *to) = {
	    put_facts, put_lateness, put_devices, put_malformed};
	int r = 0;

	if (!record->replay)
		return 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = parts[i](record->replay, html, to);
	return r;
}
