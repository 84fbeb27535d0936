/* SPDX-License-Identifier: MIT
 *
 * sanlab bench: raw path benchmark against any target.
 */
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/run/bench.h"
#include "harness/workload/raw.h"
#include "initiator/mpio/mpio.h"

/* Each returns false after saying what is wrong. */
static bool take_scalar(const char *option, enum cfg_type type, const char *text, void *out)
{
	char why[200];

	if (!text || cfg_parse_scalar(type, text, out, why, sizeof why) == 0)
		return true;
	fprintf(stderr, "sanlab: --%s '%s': %s\n", option, text, why);
	return false;
}

static bool take_name(const char *option, const char *const *names, const char *text, int *out)
{
	const char *near;

	if (!text)
		return true;
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], text) == 0) {
			*out = i;
			return true;
		}
	}
	fprintf(stderr, "sanlab: --%s '%s' is unknown; allowed:", option, text);
	for (int i = 0; names[i]; i++)
		fprintf(stderr, " %s", names[i]);
	near = cfg_nearest(text, names);
	fprintf(stderr, near ? "\nhint: did you mean '%s'?\n" : "\n", near);
	return false;
}

int cmd_bench(const struct cli_args *args)
{
	struct bench_options options;

	bench_defaults(&options);
	options.urls = (const char *const *)args->words;
	options.url_count = (size_t)args->word_count;
	options.json = args->json;
	if (!take_name("op", raw_op_names, args->op, &options.op) ||
	    !take_name("pattern", raw_pattern_names, args->pattern, &options.pattern) ||
	    !take_name("policy", mpio_policy_names, args->policy, &options.policy) ||
	    !take_scalar("bs", CFG_SIZE, args->block_size, &options.block_bytes) ||
	    !take_scalar("qd", CFG_UINT, args->queue_depth, &options.queue_depth) ||
	    !take_scalar("threads", CFG_UINT, args->threads, &options.threads) ||
	    !take_scalar("read-share", CFG_PERCENT, args->read_share, &options.read_share) ||
	    !take_scalar("time", CFG_DURATION, args->time, &options.time_ns) ||
	    !take_scalar("warmup", CFG_DURATION, args->warmup, &options.warmup_ns))
		return EXIT_USAGE;
	return bench_run(&options, stdout);
}
