/* SPDX-License-Identifier: MIT
 *
 * Knobs for rare paths: the table, and how it is read.
 */
#include "base/knob.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

struct knobs knobs;

static const struct knob {
	const char *name;
	uint32_t *value;
	uint32_t min, max;
} table[] = {
    {"SANLAB_TEST_DIGESTS", &knobs.digests, 0, 1},
    {"SANLAB_TEST_SPLIT_READS", &knobs.split_reads_bytes, 1, UINT32_MAX},
    {"SANLAB_TEST_SMALL_WRITES", &knobs.small_writes_bytes, 1, UINT32_MAX},
    {"SANLAB_TEST_SMALL_MRDSL", &knobs.small_mrdsl_bytes, 512, 262144},
};

int knobs_load(struct err *err)
{
	struct knobs empty = {0};

	knobs = empty;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *text = getenv(table[i].name);
		unsigned long long number;
		char *end;

		if (!text || !text[0])
			continue;
		errno = 0;
		number = strtoull(text, &end, 10);
		if (!isdigit((unsigned char)text[0]) || *end || errno || number < table[i].min ||
		    number > table[i].max)
			return err_set(err, -EINVAL, "%s=%s: must be a number from %u to %u",
				       table[i].name, text, table[i].min, table[i].max);
		*table[i].value = (uint32_t)number;
	}
	return 0;
}
