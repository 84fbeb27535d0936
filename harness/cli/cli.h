/* SPDX-License-Identifier: MIT
 *
 * The command line: one table of options, one table of verbs; parsing and help come from both.
 */
#ifndef SANLAB_HARNESS_CLI_CLI_H
#define SANLAB_HARNESS_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

enum { CLI_MAX_SETS = 64, CLI_MAX_RUNS = 256 };

/* What the options said; only those a verb takes can be set. */
struct cli_args {
	const char *sets[CLI_MAX_SETS]; /* --set and --seed, in order */
	size_t set_count;
	const char *out_dir, *control, *record;
	const char *op, *block_size, *queue_depth, *threads, *time, *warmup, *policy, *pattern,
	    *read_share;
	const char *mailboxes, *quota, *messages, *message_size, *profile, *servers, *databases,
	    *copies, *array;
	bool quiet, verbose, json, reference, no_progress, esrp, virtual_time;
	char **words; /* what is no option */
	int word_count;
};

enum cli_option_bit {
	CLI_SET = 1 << 0,
	CLI_OUT = 1 << 1,
	CLI_CONTROL = 1 << 2,
	CLI_BENCH = 1 << 3,
	CLI_JSON = 1 << 4,
	CLI_REFERENCE = 1 << 5,
	CLI_PROGRESS = 1 << 6,
	CLI_VIRTUAL = 1 << 7,
	CLI_ESRP = 1 << 8,
	CLI_SIZE = 1 << 9,
	CLI_RECORD = 1 << 10,
};

struct cli_verb {
	const char *name;
	const char *words; /* "LAB.yaml" */
	const char *help;
	unsigned options; /* enum cli_option_bit; --quiet, --verbose and --help always */
	int min_words, max_words;
	int (*run)(const struct cli_args *args); /* returns enum exit_code */
	void (*more_help)(void);		 /* after the options; may be NULL */
};
extern const struct cli_verb cli_verbs[];
extern const size_t cli_verb_count;

/* Parses what follows the verb.  Returns 0 to go on, or the exit code + 1 to leave with (help, bad
 * usage: already said). */
int cli_parse(const struct cli_verb *verb, int argc, char **argv, struct cli_args *ret_args);
void cli_help(void);
void cli_verb_help(const struct cli_verb *verb);

int cmd_bench(const struct cli_args *args);
int cmd_check(const struct cli_args *args);
int cmd_ctl(const struct cli_args *args);
void cmd_ctl_help(void);
int cmd_import(const struct cli_args *args);
int cmd_report(const struct cli_args *args);
int cmd_size(const struct cli_args *args);
int cmd_run(const struct cli_args *args);
int cmd_target(const struct cli_args *args);

#endif
