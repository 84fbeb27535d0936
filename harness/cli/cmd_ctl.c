/* SPDX-License-Identifier: MIT
 *
 * sanlab ctl SOCKET COMMAND [KEY=VALUE...]: one request to a running target and its answer: the
 * status as a table, or with --json as the document it is; of all other commands the document.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/cli/status_text.h"
#include "target/control/control.h"

/* Numbers go as numbers, all else as text. */
static json_t *value_of(const char *text)
{
	char *end, *real_end;
	long long number = strtoll(text, &end, 10);
	double real = strtod(text, &real_end);

	if (*text && !*end)
		return json_integer(number);
	return *text && !*real_end && isfinite(real) ? json_real(real) : json_string(text);
}

static json_t *request_of(const struct cli_args *args)
{
	json_t *request = json_pack("{s:s}", "command", args->words[1]);

	for (int i = 2; i < args->word_count; i++) {
		const char *equals = strchr(args->words[i], '=');
		char key[64];

		if (!equals || (size_t)(equals - args->words[i]) >= sizeof key) {
			fprintf(stderr,
				"sanlab: '%s' is not KEY=VALUE\nhint: sanlab ctl SOCKET reset "
				"portal=127.0.0.1:3261\n",
				args->words[i]);
			json_decref(request);
			return NULL;
		}
		snprintf(key, sizeof key, "%.*s", (int)(equals - args->words[i]), args->words[i]);
		json_object_set_new(request, key, value_of(equals + 1));
	}
	return request;
}

void cmd_ctl_help(void)
{
	const struct control_command_info *command;

	printf("\ncommands:\n");
	for (size_t i = 0; (command = control_command_info(i)); i++) {
		char left[100];

		snprintf(left, sizeof left, "%s %s", command->name, command->args);
		printf("  %s\n      %s\n", left, command->help);
	}
}

int cmd_ctl(const struct cli_args *args)
{
	json_t *request = request_of(args), *answer;
	struct err err = {0};
	int r;

	if (!request)
		return EXIT_USAGE;
	r = control_call(args->words[0], request, 10 * NS_PER_S, &answer, &err);
	json_decref(request);
	if (r) {
		err_print(&err);
		return r == -EREMOTEIO ? EXIT_USAGE : EXIT_ENVIRONMENT;
	}
	if (!args->json && strcmp(args->words[1], "status") == 0) {
		status_text(answer, stdout);
	} else {
		json_dumpf(answer, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(answer);
	return EXIT_PASS;
}
