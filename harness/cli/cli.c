/* SPDX-License-Identifier: MIT
 *
 * Option parsing and help, both from the tables.
 */
#include "harness/cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

enum option_kind { OPTION_TEXT, OPTION_FLAG, OPTION_SET, OPTION_SEED };

struct cli_option {
	const char *name, *value, *help;
	enum option_kind kind;
	size_t offset;	  /* into struct cli_args */
	unsigned of_bits; /* the enum cli_option_bit it belongs to; 0: every verb */
};

#define FIELD(f) offsetof(struct cli_args, f)

static const struct cli_option options[] = {
    {"set", "KEY=VALUE", "override a key of the lab file (repeatable), e.g. run.duration=10s",
     OPTION_SET, 0, CLI_SET},
    {"seed", "N", "short for --set seed=N", OPTION_SEED, 0, CLI_SET},
    {"out", "DIR", "write run.json, report.html, junit.xml and the other results into DIR",
     OPTION_TEXT, FIELD(out_dir), CLI_OUT},
    {"record", "FILE", "write the load's I/Os into FILE as a fio iolog (version 3; gzip if *.gz)",
     OPTION_TEXT, FIELD(record), CLI_RECORD},
    {"control", "SOCKET", "serve the control socket there", OPTION_TEXT, FIELD(control),
     CLI_CONTROL},
    {"op", "KIND", "read (default), write or rw", OPTION_TEXT, FIELD(op), CLI_BENCH},
    {"bs", "SIZE", "bytes per I/O, default 4KiB", OPTION_TEXT, FIELD(block_size), CLI_BENCH},
    {"qd", "N", "I/Os in flight, default 32", OPTION_TEXT, FIELD(queue_depth), CLI_BENCH},
    {"threads", "N", "threads, each with sessions and I/Os in flight of its own; default 1",
     OPTION_TEXT, FIELD(threads), CLI_BENCH},
    {"pattern", "KIND", "random (default) or sequential", OPTION_TEXT, FIELD(pattern), CLI_BENCH},
    {"read-share", "PERCENT", "share of reads with --op rw, default 64%", OPTION_TEXT,
     FIELD(read_share), CLI_BENCH},
    {"time", "DURATION", "measured time, default 5s", OPTION_TEXT, FIELD(time), CLI_BENCH},
    {"warmup", "DURATION", "time before it, default 500ms", OPTION_TEXT, FIELD(warmup), CLI_BENCH},
    {"policy", "NAME", "path policy when several URLs are given, default round-robin", OPTION_TEXT,
     FIELD(policy), CLI_BENCH},
    {"virtual", NULL, "everything in this process, in virtual time: hours in seconds", OPTION_FLAG,
     FIELD(virtual_time), CLI_VIRTUAL},
    {"mailboxes", "N", "mailboxes of all servers", OPTION_TEXT, FIELD(mailboxes), CLI_SIZE},
    {"quota", "SIZE", "what a mailbox may hold, such as 2GiB", OPTION_TEXT, FIELD(quota), CLI_SIZE},
    {"profile", "NAME",
     "exchange-2010, exchange-2010-standalone, exchange-2013 (default) or "
     "exchange-2016",
     OPTION_TEXT, FIELD(profile), CLI_SIZE},
    {"messages", "N", "sent and received by a mailbox in a day: 50 to 500; default 150",
     OPTION_TEXT, FIELD(messages), CLI_SIZE},
    {"message-size", "SIZE", "mean of them, default 75KB", OPTION_TEXT, FIELD(message_size),
     CLI_SIZE},
    {"servers", "N", "mailbox servers, default 1", OPTION_TEXT, FIELD(servers), CLI_SIZE},
    {"databases", "N", "active databases of all servers; default: as large as is advised",
     OPTION_TEXT, FIELD(databases), CLI_SIZE},
    {"copies", "N", "copies of a database; default: the profile's", OPTION_TEXT, FIELD(copies),
     CLI_SIZE},
    {"array", "MODEL", "the array of the lab, default me4024", OPTION_TEXT, FIELD(array), CLI_SIZE},
    {"esrp", NULL,
     "one summary of several runs of Jetstress' kind, in the manner of an ESRP paper, on standard "
     "output; with --out also as esrp.html and esrp.txt there",
     OPTION_FLAG, FIELD(esrp), CLI_ESRP},
    {"json", NULL, "print the answer as one JSON document", OPTION_FLAG, FIELD(json), CLI_JSON},
    {"reference", NULL, "print every key of the lab file with its meaning and default", OPTION_FLAG,
     FIELD(reference), CLI_REFERENCE},
    {"no-progress", NULL, "draw no progress line", OPTION_FLAG, FIELD(no_progress), CLI_PROGRESS},
    {"quiet", NULL, "print nothing but errors", OPTION_FLAG, FIELD(quiet), 0},
    {"verbose", NULL, "print diagnostics to stderr", OPTION_FLAG, FIELD(verbose), 0},
};

static bool verb_takes(const struct cli_verb *verb, const struct cli_option *option)
{
	return !option->of_bits || (verb->options & option->of_bits);
}

void cli_verb_help(const struct cli_verb *verb)
{
	printf("sanlab %s %s [options]\n    %s\n\noptions:\n", verb->name, verb->words, verb->help);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char left[40];

		if (!verb_takes(verb, &options[i]))
			continue;
		snprintf(left, sizeof left, "--%s %s", options[i].name,
			 options[i].value ? options[i].value : "");
		printf("  %-22s %s\n", left, options[i].help);
	}
	printf("  %-22s %s\n", "--help", "print this");
	if (verb->more_help)
		verb->more_help();
}

void cli_help(void)
{
	printf("sanlab: a SAN-path laboratory on one Linux machine\n\nusage:\n");
	for (size_t i = 0; i < cli_verb_count; i++)
		printf("  sanlab %-7s %-18s %s\n", cli_verbs[i].name, cli_verbs[i].words,
		       cli_verbs[i].help);
	printf(
	    "\n`sanlab VERB --help` lists a verb's options; `sanlab check --reference` every key "
	    "of the lab file.\n"
	    "exit status: 0 pass, 1 an expectation failed, 2 usage or configuration,\n"
	    "             3 the environment lacks something, 4 internal error\n");
}

static int bad_usage(const struct cli_verb *verb, const char *what)
{
	fprintf(stderr, "sanlab: %s\nhint: sanlab %s --help\n", what, verb->name);
	return EXIT_USAGE + 1;
}

/* Keeps one assignment; the text of --seed lives as long as the process. */
static int keep_set(const struct cli_verb *verb, struct cli_args *args, const char *prefix,
		    char *value)
{
	if (args->set_count == CLI_MAX_SETS)
		return bad_usage(verb, "too many --set");
	if (*prefix) {
		static char seed_assignment[64];

		snprintf(seed_assignment, sizeof seed_assignment, "%s%s", prefix, value);
		value = seed_assignment;
	}
	args->sets[args->set_count++] = value;
	return 0;
}

static int take(const struct cli_verb *verb, const struct cli_option *option, char *value,
		struct cli_args *args)
{
	void *field = (char *)args + option->offset;

	switch (option->kind) {
	case OPTION_TEXT:
		memcpy(field, &value, sizeof value);
		return 0;
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_SET:
		return keep_set(verb, args, "", value);
	case OPTION_SEED:
		return keep_set(verb, args, "seed=", value);
	}
	return 0;
}

static int check_words(const struct cli_verb *verb, const struct cli_args *args)
{
	char what[160];

	if (args->reference)
		return 0;
	if (args->word_count >= verb->min_words && args->word_count <= verb->max_words)
		return 0;
	snprintf(what, sizeof what, "%s takes %s", verb->name, verb->words);
	return bad_usage(verb, what);
}

int cli_parse(const struct cli_verb *verb, int argc, char **argv, struct cli_args *ret_args)
{
	struct option table[ARRAY_SIZE(options) + 2] = {0};
	unsigned index_of[ARRAY_SIZE(options) + 1];
	unsigned count = 0;
	int chosen, at;

	for (unsigned i = 0; i < ARRAY_SIZE(options); i++) {
		if (!verb_takes(verb, &options[i]))
			continue;
		index_of[count] = i;
		table[count++] = (struct option){
		    options[i].name, options[i].value ? required_argument : no_argument, NULL, 1};
	}
	table[count] = (struct option){"help", no_argument, NULL, 'h'};
	*ret_args = (struct cli_args){0};
	while ((chosen = getopt_long(argc, argv, "h", table, &at)) != -1) {
		int r;

		if (chosen == 'h') {
			cli_verb_help(verb);
			return EXIT_PASS + 1;
		}
		if (chosen != 1)
			return bad_usage(verb, "bad option"); /* getopt has named it */
		r = take(verb, &options[index_of[at]], optarg, ret_args);
		if (r)
			return r;
	}
	ret_args->words = argv + optind;
	ret_args->word_count = argc - optind;
	return check_words(verb, ret_args);
}
