/* SPDX-License-Identifier: MIT
 *
 * Scaled numbers and timestamps for people.
 */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"

/* Three significant digits: 1.84, 18.4, 184. */
static int decimals_of(double value)
{
	value = fabs(value);
	/* The limits are where rounding would give a digit more. */
	return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

char *text_duration(char *out, size_t size, double ns)
{
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	size_t i = 0;

	if (!isfinite(ns)) {
		snprintf(out, size, "-");
		return out;
	}
	while (i + 1 < ARRAY_SIZE(unit) && fabs(ns) >= 999.5) {
		ns /= 1000;
		i++;
	}
	snprintf(out, size, "%.*f %s", i == 0 ? 0 : decimals_of(ns), ns, unit[i]);
	return out;
}

static char *scaled_bytes(char *out, size_t size, double bytes, const char *suffix)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t i = 0;

	if (!isfinite(bytes)) {
		snprintf(out, size, "-");
		return out;
	}
	while (i + 1 < ARRAY_SIZE(unit) && fabs(bytes) >= (i == 0 ? 1023.5 : 1023.95)) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, size, "%.*f %s%s", i == 0 ? 0 : 1, bytes, unit[i], suffix);
	return out;
}

char *text_bytes(char *out, size_t size, double bytes)
{
	return scaled_bytes(out, size, bytes, "");
}

char *text_rate(char *out, size_t size, double bytes_per_s)
{
	return scaled_bytes(out, size, bytes_per_s, "/s");
}

char *text_utc(char *out, size_t size, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	unsigned ms = (unsigned)(wall_ns % NS_PER_S / NS_PER_MS);
	struct tm tm = {0};
	char date[40];

	gmtime_r(&seconds, &tm); /* 2^64 ns end in the year 2554: cannot fail */
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, size, "%s.%03uZ", date, ms);
	return out;
}

char *text_url(char *out, size_t size, const char *url)
{
	const char *begin = strstr(url, "://");
	const char *at = begin ? strchr(begin, '@') : NULL;
	const char *percent = begin ? strchr(begin, '%') : NULL;

	if (at && percent && percent < at)
		snprintf(out, size, "%.*s%%***%s", (int)(percent - url), url, at);
	else
		snprintf(out, size, "%s", url);
	return out;
}
