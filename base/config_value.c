/* SPDX-License-Identifier: MIT
 *
 * Scalars of the configuration: numbers with units, both ways, without rounding.
 *
 * Sizes and durations are computed in integers, so that `1.5GiB` is exact and what is printed
 * reads back to the same value.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/config_impl.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* Compared without regard to case; the first that divides a value is used to print it. */
static const struct unit size_units[] = {
    {"TiB", TIB},
    {"GiB", GIB},
    {"MiB", MIB},
    {"KiB", KIB},
    {"B", 1},
    {"TB", UINT64_C(1000000000000)},
    {"GB", UINT64_C(1000000000)},
    {"MB", UINT64_C(1000000)},
    {"kB", UINT64_C(1000)},
    {"t", TIB},
    {"g", GIB},
    {"m", MIB},
    {"k", KIB},
    {"", 1},
};

static const struct unit duration_units[] = {
    {"h", 3600 * NS_PER_S},   {"m", 60 * NS_PER_S},   {"s", NS_PER_S},
    {"ms", NS_PER_MS},	      {"us", NS_PER_US},      {"ns", 1},
    {"d", 86400 * NS_PER_S},  {"min", 60 * NS_PER_S}, {"sec", NS_PER_S},
    {"\302\265s", NS_PER_US}, /* micro sign */
};

static const char size_help[] = "units understood: B, KiB, MiB, GiB, TiB (1024; also k, M, G, T) "
				"and kB, MB, GB, TB (1000)";
static const char duration_help[] = "units understood: ns, us, ms, s, m, h, d";

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(units[i].name, name))
			return &units[i];
	return NULL;
}

/* Splits "1.5 GiB" into digits, fraction digits and the unit's name. */
struct quantity {
	uint64_t whole;
	uint64_t fraction, fraction_scale; /* fraction / fraction_scale */
	char unit[8];
};

static int split_quantity(const char *text, struct quantity *q)
{
	const char *p = text;
	*q = (struct quantity){.fraction_scale = 1};

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		unsigned digit = (unsigned)(*p - '0');
		if (q->whole > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		q->whole = q->whole * 10 + digit;
	}
	if (*p == '.') {
		p++;
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++) {
			if (q->fraction_scale >= UINT64_C(1000000000000))
				return -EINVAL;
			q->fraction = q->fraction * 10 + (unsigned)(*p - '0');
			q->fraction_scale *= 10;
		}
	}
	while (*p == ' ')
		p++;
	size_t length = strlen(p);
	while (length && p[length - 1] == ' ')
		length--;
	if (length >= sizeof q->unit)
		return -EINVAL;
	memcpy(q->unit, p, length);
	return 0;
}

__extension__ typedef unsigned __int128 u128;

/* whole and fraction times FACTOR; -ERANGE beyond 64 bits, -EDOM when not a whole number. */
static int scale_quantity(const struct quantity *q, uint64_t factor, uint64_t *ret_value)
{
	u128 part = (u128)q->fraction * factor;
	if (part % q->fraction_scale)
		return -EDOM;
	u128 value = (u128)q->whole * factor + part / q->fraction_scale;
	if (value > UINT64_MAX)
		return -ERANGE;
	*ret_value = (uint64_t)value;
	return 0;
}

static int parse_size(const char *text, uint64_t *out, char *why, size_t why_size)
{
	struct quantity q;
	int rc = split_quantity(text, &q);
	const struct unit *unit = rc ? NULL : find_unit(size_units, ARRAY_SIZE(size_units), q.unit);

	if (unit)
		rc = scale_quantity(&q, unit->factor, out);
	if (unit && !rc)
		return 0;
	if (rc == -ERANGE)
		(void)snprintf(why, why_size, "'%.60s' is too large a size", text);
	else if (rc == -EDOM)
		(void)snprintf(why, why_size, "'%.60s' is not a whole number of bytes", text);
	else
		(void)snprintf(why, why_size, "'%.60s' is not a size; %s", text, size_help);
	return -EINVAL;
}

static int parse_duration(const char *text, uint64_t *out, char *why, size_t why_size)
{
	struct quantity q;
	int rc = split_quantity(text, &q);
	const struct unit *unit =
	    rc ? NULL : find_unit(duration_units, ARRAY_SIZE(duration_units), q.unit);

	if (!rc && !q.unit[0]) {
		if (!q.whole && !q.fraction) { /* zero is zero in any unit */
			*out = 0;
			return 0;
		}
		(void)snprintf(why, why_size, "'%.60s' lacks a unit of time; %s", text,
			       duration_help);
		return -EINVAL;
	}
	if (unit)
		rc = scale_quantity(&q, unit->factor, out);
	if (unit && !rc)
		return 0;
	if (rc == -ERANGE)
		(void)snprintf(why, why_size, "'%.60s' is too long a time", text);
	else if (rc == -EDOM)
		(void)snprintf(why, why_size, "'%.60s' is not a whole number of nanoseconds", text);
	else
		(void)snprintf(why, why_size, "'%.60s' is not a duration; %s", text, duration_help);
	return -EINVAL;
}

static int parse_uint(const char *text, uint64_t *out, char *why, size_t why_size)
{
	struct quantity q;
	int rc = split_quantity(text, &q);
	if (!rc && !q.unit[0] && q.fraction_scale == 1) {
		*out = q.whole;
		return 0;
	}
	if (rc == -ERANGE)
		(void)snprintf(why, why_size, "'%.60s' is too large a number", text);
	else
		(void)snprintf(why, why_size, "'%.60s' is not a whole number", text);
	return -EINVAL;
}

/* A finite plain decimal number; SUFFIX receives what follows it.  Hexadecimal, infinities and
 * NaN, which strtod takes, are not numbers here. */
static bool parse_decimal(const char *text, double *out, const char **ret_suffix)
{
	const char *p = text;
	if (*p == '-' || *p == '+')
		p++;
	if (!isdigit((unsigned char)*p) || (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')))
		return false;
	char *end = NULL;
	double value = strtod(text, &end);
	if (end == text || !isfinite(value))
		return false;
	while (*end == ' ')
		end++;
	*out = value;
	*ret_suffix = end;
	return true;
}

static int parse_percent(const char *text, double *out, char *why, size_t why_size)
{
	const char *suffix;
	double value;
	if (parse_decimal(text, &value, &suffix) && (!strcmp(suffix, "%") || value == 0)) {
		*out = value / 100;
		return 0;
	}
	(void)snprintf(why, why_size, "'%.60s' is not a percentage; write it as 5%%", text);
	return -EINVAL;
}

static int parse_real(const char *text, double *out, char *why, size_t why_size)
{
	const char *suffix;
	double value;
	if (parse_decimal(text, &value, &suffix) && (!*suffix || !strcmp(suffix, "/s"))) {
		*out = value;
		return 0;
	}
	(void)snprintf(why, why_size, "'%.60s' is not a number", text);
	return -EINVAL;
}

static int parse_portal(const char *text, struct cfg_portal *out, char *why, size_t why_size)
{
	struct cfg_portal portal = {.set = true};
	unsigned char address[16];
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[';
	const char *host = v6 ? text + 1 : text;
	size_t length = colon ? (size_t)(colon - host) : 0;
	char *end = NULL;

	if (!colon || colon < host || (v6 && (length == 0 || host[length - 1] != ']')))
		goto bad;
	if (v6)
		length--;
	if (!length || length >= sizeof portal.host)
		goto bad;
	memcpy(portal.host, host, length);
	if (inet_pton(v6 ? AF_INET6 : AF_INET, portal.host, address) != 1)
		goto bad;
	if (!inet_ntop(v6 ? AF_INET6 : AF_INET, address, portal.host, sizeof portal.host))
		goto bad;
	if (!isdigit((unsigned char)colon[1]) || strlen(colon + 1) > 5)
		goto bad;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (*end || port < 1 || port > UINT16_MAX)
		goto bad;
	portal.port = (uint16_t)port;
	(void)snprintf(portal.text, sizeof portal.text, v6 ? "[%s]:%u" : "%s:%u", portal.host,
		       portal.port);
	*out = portal;
	return 0;
bad:
	(void)snprintf(why, why_size,
		       "'%.60s' is not a portal; write a numeric address and a port from 1 to "
		       "65535, as 127.0.0.1:3260 or [::1]:3260",
		       text);
	return -EINVAL;
}

int cfg_parse_scalar(enum cfg_type type, const char *text, void *out, char *why, size_t why_size)
{
	switch (type) {
	case CFG_SIZE:
		return parse_size(text, out, why, why_size);
	case CFG_DURATION:
		return parse_duration(text, out, why, why_size);
	case CFG_UINT:
		return parse_uint(text, out, why, why_size);
	case CFG_PERCENT:
		return parse_percent(text, out, why, why_size);
	case CFG_REAL:
		return parse_real(text, out, why, why_size);
	case CFG_PORTAL:
		return parse_portal(text, out, why, why_size);
	default:
		(void)snprintf(why, why_size, "not a scalar type");
		return -EINVAL;
	}
}

bool cfg_parse_bool(const char *text, bool *ret_value)
{
	static const char *const yes[] = {"true", "yes", "on"};
	static const char *const no[] = {"false", "no", "off"};
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcasecmp(text, yes[i]) && strcasecmp(text, no[i]))
			continue;
		*ret_value = !strcasecmp(text, yes[i]);
		return true;
	}
	return false;
}

/* VALUE with the first of the COUNT units that divides it; zero takes the last. */
static void format_units(const struct unit *units, size_t count, uint64_t value, char *out,
			 size_t size)
{
	size_t i = 0;
	while (i < count - 1 && (!value || value % units[i].factor))
		i++;
	(void)snprintf(out, size, "%llu%s", (unsigned long long)(value / units[i].factor),
		       units[i].name);
}

/* The shortest decimal that reads back to VALUE after division by DIVISOR. */
static void format_real(double value, double divisor, const char *suffix, char *out, size_t size)
{
	char digits[40];
	for (int precision = 6; precision <= 17; precision++) {
		(void)snprintf(digits, sizeof digits, "%.*g", precision, value * divisor);
		if (strtod(digits, NULL) / divisor == value)
			break;
	}
	(void)snprintf(out, size, "%s%s", digits, suffix);
}

void cfg_format_scalar(enum cfg_type type, const void *value, char *out, size_t size)
{
	uint64_t number = 0;
	double real = 0;

	if (type == CFG_SIZE || type == CFG_DURATION || type == CFG_UINT)
		memcpy(&number, value, sizeof number);
	else if (type == CFG_PERCENT || type == CFG_REAL)
		memcpy(&real, value, sizeof real);

	switch (type) {
	case CFG_SIZE:
		format_units(size_units, 5, number, out, size);
		break;
	case CFG_DURATION:
		format_units(duration_units, 6, number, out, size);
		break;
	case CFG_UINT:
		(void)snprintf(out, size, "%llu", (unsigned long long)number);
		break;
	case CFG_PERCENT:
		format_real(real, 100, "%", out, size);
		break;
	case CFG_REAL:
		format_real(real, 1, "", out, size);
		break;
	case CFG_PORTAL:
		(void)snprintf(out, size, "%s", ((const struct cfg_portal *)value)->text);
		break;
	default:
		out[0] = 0;
		break;
	}
}

void cfg_format_limit(enum cfg_type type, double limit, char *out, size_t size)
{
	uint64_t number = limit >= (double)UINT64_MAX ? UINT64_MAX : (uint64_t)limit;

	if (type == CFG_UINTS)
		type = CFG_UINT;
	if (type == CFG_PERCENT)
		(void)snprintf(out, size, "%.15g%%", limit);
	else if (type == CFG_REAL)
		(void)snprintf(out, size, "%.15g", limit);
	else
		cfg_format_scalar(type, &number, out, size);
}

/* ---- near misses ---- */

enum { NEAR_MAX = 40 }; /* longer words have no near misses worth showing */

/* Optimal string alignment distance without regard to case: insertions, deletions, changes and
 * swaps of neighbours count one each. */
static unsigned distance(const char *a, const char *b)
{
	size_t rows = strlen(a), columns = strlen(b);
	unsigned d[3][NEAR_MAX + 1];

	for (size_t j = 0; j <= columns; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= rows; i++) {
		unsigned *row = d[i % 3], *up = d[(i + 2) % 3], *upper = d[(i + 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= columns; j++) {
			int ca = tolower((unsigned char)a[i - 1]);
			int cb = tolower((unsigned char)b[j - 1]);
			row[j] = up[j - 1] + (ca != cb);
			row[j] = MIN_OF(row[j], up[j] + 1);
			row[j] = MIN_OF(row[j], row[j - 1] + 1);
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				row[j] = MIN_OF(row[j], upper[j - 2] + 1);
		}
	}
	return d[rows % 3][columns];
}

const char *cfg_nearest(const char *word, const char *const *names)
{
	size_t length = strlen(word);
	const char *nearest = NULL;
	if (!length || length > NEAR_MAX)
		return NULL;
	/* A third of the letters may be wrong, at least one; two in words of five. */
	unsigned best = (unsigned)(length + 1) / 3 + 1;

	for (; *names; names++) {
		if (strlen(*names) > NEAR_MAX)
			continue;
		unsigned off = distance(word, *names);
		if (off < best && off < strlen(*names)) {
			best = off;
			nearest = *names;
		}
	}
	return nearest;
}
