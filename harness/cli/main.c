/* SPDX-License-Identifier: MIT
 *
 * sanlab: picks the verb.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "harness/cli/cli.h"
#include "sanlab_version.h"

const struct cli_verb cli_verbs[] = {
    {"run", "LAB.yaml", "start what the lab defines, replay, check, report",
     CLI_SET | CLI_OUT | CLI_PROGRESS | CLI_VIRTUAL | CLI_RECORD, 1, 1, cmd_run},
    {"target", "LAB.yaml", "only the target, in the foreground", CLI_SET | CLI_CONTROL | CLI_OUT, 1,
     1, cmd_target},
    {"bench", "URL...", "raw path benchmark against any target", CLI_BENCH | CLI_JSON, 1, 64,
     cmd_bench},
    {"check", "LAB.yaml", "validate a lab file and print its effective configuration",
     CLI_SET | CLI_REFERENCE, 1, 1, cmd_check},
    {"ctl", "SOCKET COMMAND...", "status, statistics and faults of a running target", CLI_JSON, 2,
     10, cmd_ctl, cmd_ctl_help},
    {"size", "", "what an Exchange needs of its storage: databases, logs, I/O, drives, as a lab",
     CLI_SIZE, 0, 0, cmd_size},
    {"import", "JetstressConfig.xml", "print the lab file that a Jetstress configuration comes to",
     0, 1, 1, cmd_import},
    {"report", "DIR...", "render a finished run again, or --esrp: sum several up",
     CLI_ESRP | CLI_OUT, 1, CLI_MAX_RUNS, cmd_report},
};
const size_t cli_verb_count = ARRAY_SIZE(cli_verbs);

static const struct cli_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < cli_verb_count; i++)
		if (!strcmp(cli_verbs[i].name, name))
			return &cli_verbs[i];
	return NULL;
}

/* An answer that could not be written is none. */
static int leave(int code)
{
	bool lost = ferror(stdout);

	if (fflush(stdout) == EOF || lost) {
		fprintf(stderr, "sanlab: cannot write to standard output: %s\n",
			errno ? strerror(errno) : "it is closed");
		return code == EXIT_PASS || code == EXIT_EXPECTATION ? EXIT_ENVIRONMENT : code;
	}
	return code;
}

int main(int argc, char **argv)
{
	const struct cli_verb *verb;
	struct cli_args args;
	int r;

	/* A peer or pipe that goes away is an error of that write, not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		cli_help();
		return leave(argc < 2 ? EXIT_USAGE : EXIT_PASS);
	}
	if (!strcmp(argv[1], "--version")) {
		printf("sanlab %s\n", SANLAB_VERSION);
		return leave(EXIT_PASS);
	}
	verb = find_verb(argv[1]);
	if (!verb) {
		fprintf(stderr, "sanlab: unknown verb '%s'\nhint: sanlab --help\n", argv[1]);
		return EXIT_USAGE;
	}
	r = cli_parse(verb, argc - 1, argv + 1, &args);
	if (r)
		return leave(r - 1);
	log_set_level(args.verbose ? LOG_LEVEL_DEBUG
				   : (args.quiet ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO));
	return leave(verb->run(&args));
}
