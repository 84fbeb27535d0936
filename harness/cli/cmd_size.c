/* SPDX-License-Identifier: MIT
 *
 * sanlab size: what an Exchange of so many mailboxes needs of its storage, as a table above a lab
 * that tries it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/config.h"
#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/lab/size_lab.h"
#include "harness/workload/exchange_profile.h"

/* Takes TEXT (NULL: nothing) as a value of TYPE into OUT. */
static int take(const char *option, enum cfg_type type, const char *text, uint64_t *out,
		struct err *err)
{
	char why[160];

	if (!text)
		return 0;
	if (cfg_parse_scalar(type, text, out, why, sizeof why) == 0)
		return 0;
	err_set(err, -EINVAL, "--%s %s: %s", option, text, why);
	return -EINVAL;
}

static int take_name(const char *option, const char *const *names, const char *text, int *out,
		     struct err *err)
{
	const char *nearest;

	for (int i = 0; names[i] && text; i++) {
		if (strcmp(names[i], text) == 0) {
			*out = i;
			return 0;
		}
	}
	if (!text)
		return 0;
	err_set(err, -EINVAL, "--%s %s: there is none of that name", option, text);
	nearest = cfg_nearest(text, names);
	if (nearest)
		err_hint(err, "did you mean %s?", nearest);
	return -EINVAL;
}

static int index_of(const char *const *names, const char *name)
{
	int i = 0;

	while (names[i] && strcmp(names[i], name) != 0)
		i++;
	return names[i] ? i : 0;
}

int cmd_size(const struct cli_args *args)
{
	int model = index_of(preset_names, "me4024");
	struct exchange_demand demand = {
	    .profile = index_of(exchange_profile_names, "exchange-2013"),
	};
	const struct {
		const char *option, *text;
		enum cfg_type type;
		uint64_t *out;
	} values[] = {
	    {"mailboxes", args->mailboxes, CFG_UINT, &demand.mailboxes},
	    {"quota", args->quota, CFG_SIZE, &demand.quota_bytes},
	    {"messages", args->messages, CFG_UINT, &demand.messages},
	    {"message-size", args->message_size, CFG_SIZE, &demand.message_bytes},
	    {"servers", args->servers, CFG_UINT, &demand.servers},
	    {"databases", args->databases, CFG_UINT, &demand.databases},
	    {"copies", args->copies, CFG_UINT, &demand.copies},
	};
	struct exchange_sizing sizing;
	struct err err = {0};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(values) && r == 0; i++)
		r = take(values[i].option, values[i].type, values[i].text, values[i].out, &err);
	if (r == 0)
		r = take_name("profile", exchange_profile_names, args->profile, &demand.profile,
			      &err);
	if (r == 0)
		r = take_name("array", preset_names, args->array, &model, &err);
	if (r == 0)
		r = exchange_size(&demand, &sizing, &err);
	if (r < 0) {
		if (!*err.hint)
			err_hint(&err, "sanlab size --mailboxes 1000 --quota 2GiB --messages 150");
		err_print(&err);
		return EXIT_USAGE;
	}
	return size_put_lab(&sizing, model, stdout) < 0 ? EXIT_ENVIRONMENT : EXIT_PASS;
}
