/* SPDX-License-Identifier: MIT
 *
 * The replay's part of the lab file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "harness/workload/replay_impl.h"

const char *const replay_mode_names[] = {"timed", "afap", "dependency", NULL};
static const char *const join_names[] = {"merge", "append", NULL};
static const char *const beyond_names[] = {"wrap", "skip", "fail", NULL};
static const char *const begin_names[] = {"D", "Q", NULL};
static const char *const files_names[] = {"all",	 "databases", "logs",
					  "checkpoints", "others",    NULL};

/* The rows of these tables are long. */
/* clang-format off */
#define AT(member) offsetof(struct replay_map_config, member)
static const struct cfg_field map_fields[] = {
	{.key = "from", .type = CFG_STRING, .offset = AT(from), .required = true,
	 .help = "devices of the trace, a name or a pattern (hm.*); the first row that fits counts"},
	{.key = "files", .type = CFG_ENUM, .offset = AT(files), .preset = "all", .names = files_names,
	 .help = "only I/Os of these files of Exchange, of a trace that tells files (etw)"},
	{.key = "to", .type = CFG_STRINGS, .offset = AT(to), .required = true,
	 .help = "volumes: one, or several that the device is striped over; VOLUME or HOST/VOLUME"},
	{.key = "offset", .type = CFG_SIZE, .offset = AT(offset_bytes),
	 .help = "where the region of these devices begins on each volume"},
	{.key = "size", .type = CFG_SIZE, .offset = AT(size_bytes),
	 .help = "the region's size on each volume; default: to its end"},
	{.key = "stripe", .type = CFG_SIZE, .offset = AT(stripe_bytes), .preset = "1MiB", .min = 4096,
	 .max = 1099511627776.0, .help = "how much of the device goes to one volume before the next"},
};
#undef AT
static const struct cfg_schema map_schema = {
	"replay map", sizeof(struct replay_map_config), map_fields, ARRAY_SIZE(map_fields)};

#define AT(member) offsetof(struct replay_config, member)
static const struct cfg_field fields[] = {
	{.key = "type", .type = CFG_STRING, .offset = AT(type), .help = "replay"},
	{.key = "traces", .type = CFG_STRINGS, .offset = AT(traces), .required = true,
	 .help = "files, plain or gzip; looked for in the working directory, then beside the lab file"},
	{.key = "format", .type = CFG_ENUM, .offset = AT(format), .preset = "auto",
	 .names = trace_format_names,
	 .help = "fio (iolog 2, 3), blkparse (its text), msr (MSR Cambridge), spc (1.0.1), etw "
		 "(Exchange, xperf's CSV); auto: by the first line"},
	{.key = "join", .type = CFG_ENUM, .offset = AT(join), .preset = "merge", .names = join_names,
	 .help = "several traces: on one clock, or one after the other"},
	{.key = "mode", .type = CFG_ENUM, .offset = AT(mode), .preset = "timed",
	 .names = replay_mode_names,
	 .help = "timed: at the trace's instants; afap: as fast as possible; dependency: when all that "
		 "had ended before in the trace has ended, and the thinking time after it has passed"},
	{.key = "scale-time", .type = CFG_REAL, .offset = AT(scale_time), .preset = "1", .min = 1e-6,
	 .max = 1e6, .help = "times between I/Os are multiplied by it: 0.5 is twice as fast"},
	{.key = "scale-space", .type = CFG_REAL, .offset = AT(scale_space), .preset = "1", .min = 1e-6,
	 .max = 1e6, .help = "offsets (not sizes) are multiplied by it"},
	{.key = "beyond", .type = CFG_ENUM, .offset = AT(beyond), .preset = "wrap",
	 .names = beyond_names,
	 .help = "an I/O beyond its region: begin again at the start, leave it out, or end the run"},
	{.key = "map", .type = CFG_LIST, .offset = AT(map), .sub = &map_schema,
	 .help = "which device of the trace goes where; devices that no row names are left out. "
		 "Without it the devices go to the volumes in turn, in the order of their appearance"},
	{.key = "loops", .type = CFG_UINT, .offset = AT(loops), .preset = "1", .max = 1e9,
	 .help = "how often the trace is replayed; 0: until the run ends"},
	{.key = "whole", .type = CFG_BOOL, .offset = AT(whole), .preset = "false",
	 .help = "the window lasts until the trace has ended, not for run.duration"},
	{.key = "queue-depth", .type = CFG_UINT, .offset = AT(queue_depth), .max = REPLAY_DEPTH_MAX,
	 .help = "most I/Os in flight, of all volumes; default: 1024, with mode: afap 32"},
	{.key = "max-io", .type = CFG_SIZE, .offset = AT(max_io_bytes), .preset = "1MiB",
	 .min = 65536, .max = 16777216, .help = "larger I/Os are sent in parts of that size"},
	{.key = "verify-data", .type = CFG_BOOL, .offset = AT(verify), .preset = "true",
	 .help = "what is written can be told apart, and is checked when it is read"},
	{.key = "late-limit", .type = CFG_DURATION, .offset = AT(late_limit_ns), .preset = "10ms",
	 .help = "99 % of the I/Os must be sent no later than that after they were due, unless the lab "
		 "expects something of p99-lateness or max-lateness"},
	{.key = "max-bad-lines", .type = CFG_UINT, .offset = AT(max_bad_lines), .preset = "100",
	 .help = "malformed lines that are left out, and told, before the run fails"},
	{.key = "spc-block-size", .type = CFG_SIZE, .offset = AT(spc_block_bytes), .preset = "512",
	 .min = 512, .max = 65536, .help = "what an spc trace's addresses count"},
	{.key = "blkparse-begin", .type = CFG_ENUM, .offset = AT(blkparse_begin), .preset = "D",
	 .names = begin_names,
	 .help = "which event of blkparse is an I/O: issued to the device (D), or queued by the "
		 "application (Q)"},
};
#undef AT
/* clang-format on */

const struct cfg_schema replay_schema = {"workload", sizeof(struct replay_config), fields,
					 ARRAY_SIZE(fields)};

void replay_trace_path(const struct replay_config *config, size_t index, char *out, size_t size)
{
	const char *file = ((const char *const *)config->traces.items)[index];
	const char *slash = config->lab_file ? strrchr(config->lab_file, '/') : NULL;

	snprintf(out, size, "%s", file);
	if (*file == '/' || !slash || access(out, F_OK) == 0)
		return;
	snprintf(out, size, "%.*s/%s", (int)(slash - config->lab_file), config->lab_file, file);
	if (access(out, F_OK) != 0)
		snprintf(out, size, "%s", file);
}

bool replay_reads(const struct replay_config *config, const char *file)
{
	struct stat of, trace;
	char path[REPLAY_PATH_MAX];

	if (stat(file, &of) < 0)
		return false;
	for (size_t i = 0; i < config->traces.count; i++) {
		replay_trace_path(config, i, path, sizeof path);
		if (stat(path, &trace) == 0 && trace.st_dev == of.st_dev &&
		    trace.st_ino == of.st_ino)
			return true;
	}
	return false;
}

void replay_trace_options(const struct replay_config *config, const char *const *files,
			  struct trace_options *ret_options)
{
	*ret_options = (struct trace_options){
	    .files = files,
	    .file_count = config->traces.count,
	    .format = trace_format_find(trace_format_names[config->format]),
	    .join = (enum trace_join)config->join,
	    .bad_lines_max = config->max_bad_lines,
	    .spc_block_bytes = config->spc_block_bytes,
	    .queued = config->blkparse_begin == 1,
	};
}

/* What a key says nothing about is a mistake in the lab file. */
static void check_keys(struct cfg *cfg, struct replay_config *config)
{
	if (config->mode == REPLAY_AFAP && cfg_given(cfg, &config->scale_time))
		cfg_error_at(cfg, &config->scale_time,
			     "'scale-time' has no meaning with mode: afap");
	if (config->mode == REPLAY_AFAP && cfg_given(cfg, &config->late_limit_ns))
		cfg_error_at(cfg, &config->late_limit_ns, "nothing is late with mode: afap");
	if (config->whole && config->loops == 0)
		cfg_error_at(cfg, &config->whole, "'whole' with loops: 0 would never end");
}

static void check_to(struct cfg *cfg, struct replay_map_config *row)
{
	const char *const *to = row->to.items;

	if (row->to.count == 0)
		cfg_error_at(cfg, &row->to, "'to' names no volume");
	if (row->to.count > REPLAY_VOLUMES_MAX) {
		cfg_error_at(cfg, &row->to, "'to' names more than %d volumes", REPLAY_VOLUMES_MAX);
		return;
	}
	for (size_t i = 0; i < row->to.count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(to[i], to[k]) == 0)
				cfg_error_at(cfg, &row->to, "'to' names '%.60s' twice", to[i]);
}

static void check_map(struct cfg *cfg, struct replay_config *config)
{
	struct replay_map_config *rows = config->map.items;

	for (size_t i = 0; i < config->map.count; i++) {
		check_to(cfg, &rows[i]);
		if (rows[i].stripe_bytes % 4096)
			cfg_error_at(cfg, &rows[i].stripe_bytes, "'stripe' is no multiple of 4KiB");
		if (rows[i].offset_bytes % 4096)
			cfg_error_at(cfg, &rows[i].offset_bytes, "'offset' is no multiple of 4KiB");
		if (cfg_given(cfg, &rows[i].stripe_bytes) && rows[i].to.count == 1)
			cfg_error_at(cfg, &rows[i].stripe_bytes,
				     "'stripe' needs several volumes in 'to'");
		if (rows[i].size_bytes % 4096)
			cfg_error_at(cfg, &rows[i].size_bytes, "'size' is no multiple of 4KiB");
		if (rows[i].size_bytes && rows[i].to.count > 1 &&
		    rows[i].size_bytes < rows[i].stripe_bytes)
			cfg_error_at(cfg, &rows[i].size_bytes, "'size' is smaller than 'stripe'");
		for (size_t k = 0; k < i; k++)
			if (strcmp(rows[i].from, rows[k].from) == 0 &&
			    (rows[k].files == rows[i].files || rows[k].files == REPLAY_ALL)) {
				cfg_error_at(cfg, &rows[i].from,
					     "an earlier row has all of '%.60s' already",
					     rows[i].from);
				break;
			}
	}
}

/* ... that the trace's format has no use for. */
static void check_format(struct cfg *cfg, struct replay_config *config,
			 const struct trace_format *format)
{
	struct replay_map_config *rows = config->map.items;

	if (config->mode == REPLAY_DEPENDENCY && !format->has_ends)
		cfg_error_at(cfg, &config->mode,
			     "mode: dependency needs to know when I/Os have ended, which traces of "
			     "format %s do not tell",
			     format->name);
	if (cfg_given(cfg, &config->spc_block_bytes) && format != &trace_spc)
		cfg_error_at(cfg, &config->spc_block_bytes, "the trace is of format %s, not spc",
			     format->name);
	if (cfg_given(cfg, &config->blkparse_begin) && format != &trace_blkparse)
		cfg_error_at(cfg, &config->blkparse_begin,
			     "the trace is of format %s, not blkparse", format->name);
	for (size_t i = 0; i < config->map.count; i++)
		if (rows[i].files != REPLAY_ALL && !format->has_classes)
			cfg_error_at(cfg, &rows[i].files, "traces of format %s do not tell files",
				     format->name);
}

/* Looks at the beginning of the traces, so that a wrong one is told before anything is started. */
static void check_traces(struct cfg *cfg, struct replay_config *config)
{
	char(*path)[REPLAY_PATH_MAX];
	const char *files[TRACE_FILES_MAX] = {0};
	struct trace_options options;
	struct trace_set *set;
	struct err err = {0};

	if (config->traces.count == 0 || config->traces.count > TRACE_FILES_MAX) {
		cfg_error_at(cfg, &config->traces, "'traces' has %zu files, not 1 to %d",
			     config->traces.count, TRACE_FILES_MAX);
		return;
	}
	path = calloc(config->traces.count, sizeof *path);
	for (size_t i = 0; path && i < config->traces.count; i++) {
		replay_trace_path(config, i, path[i], sizeof path[i]);
		files[i] = path[i];
	}
	replay_trace_options(config, files, &options);
	if (!path) {
		cfg_error_at(cfg, &config->traces, "no memory to read the traces");
	} else if (trace_set_open(&options, &set, &err) < 0) {
		cfg_error_at(cfg, &config->traces, "%s", err.what);
		if (err.hint[0])
			cfg_hint(cfg, "%s", err.hint);
	} else {
		check_format(cfg, config, trace_set_format(set));
		trace_set_close(set);
	}
	free(path);
}

static void configure(struct cfg *cfg, struct replay_config *config)
{
	config->lab_file = cfg_name(cfg);
	if (!config->queue_depth)
		config->queue_depth = config->mode == REPLAY_AFAP ? 32 : 1024;
	check_keys(cfg, config);
	check_map(cfg, config);
	check_traces(cfg, config);
}

void replay_configure(struct cfg *cfg, void *config)
{
	configure(cfg, config);
}
