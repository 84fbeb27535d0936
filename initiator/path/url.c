/* SPDX-License-Identifier: MIT
 *
 * iSCSI URLs: iscsi://[user%pass@]host[:port]/iqn/lun, as libiscsi's users write them.
 *
 * Hosts are numeric: resolving a name may block, and the loop never does.  `localhost` is taken
 * as 127.0.0.1.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "initiator/path/path.h"

enum { ISCSI_PORT = 3260, MAX_LUN = 16383, PART_MAX = 256 };

static const char syntax[] = "write iscsi://[user%password@]host[:port]/target-iqn/lun";

static int refuse(struct err *err, const char *url, const char *what)
{
	char shown[512];

	err_set(err, -EINVAL, "not an iSCSI URL: %s: %s", text_url(shown, sizeof shown, url), what);
	err_hint(err, "%s", syntax);
	return -EINVAL;
}

/* Copies [from, to) into OUT; -E2BIG when it does not fit. */
static int cut(char *out, size_t size, const char *from, const char *to)
{
	size_t n = (size_t)(to - from);

	if (n >= size)
		return -E2BIG;
	memcpy(out, from, n);
	out[n] = 0;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Target names may carry %3A and the like. */
static int decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '%') {
			int high = hex_digit(from[1]);
			int low = high < 0 ? -1 : hex_digit(from[2]);

			if (low < 0 || (high == 0 && low == 0))
				return -EINVAL;
			*to++ = (char)(high << 4 | low);
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
	return 0;
}

static int parse_number(const char *text, unsigned long max, unsigned long *ret_value)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end || errno || value > max)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

/* "1.2.3.4:3261", "[::1]", "localhost" -> a numeric portal with its port. */
static const char *parse_host(const char *text, char *portal, size_t size)
{
	char host[PART_MAX];
	unsigned long port = ISCSI_PORT;
	const char *colon;
	bool six = *text == '[';
	uint8_t address[16];

	if (six) {
		const char *close = strchr(text, ']');

		if (!close || cut(host, sizeof host, text + 1, close) < 0)
			return "an IPv6 address ends with ']'";
		colon = close + 1;
		if (*colon && *colon != ':')
			return "after ']' comes ':port'";
	} else {
		colon = strchr(text, ':');
		if (!colon)
			colon = text + strlen(text);
		if (cut(host, sizeof host, text, colon) < 0)
			return "the host is too long";
		if (strcmp(host, "localhost") == 0)
			memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
	}
	if (!*host)
		return "the host is missing";
	if (inet_pton(six ? AF_INET6 : AF_INET, host, address) != 1)
		return "the host must be a numeric address";
	if (*colon && (parse_number(colon + 1, 65535, &port) < 0 || port == 0))
		return "the port must be 1..65535";
	snprintf(portal, size, six ? "[%s]:%lu" : "%s:%lu", host, port);
	return NULL;
}

static const char *parse_user(const char *from, const char *to, struct path_url *out)
{
	const char *percent = memchr(from, '%', (size_t)(to - from));

	if (!percent)
		return "a user needs a password: user%password@";
	if (cut(out->user, sizeof out->user, from, percent) < 0 ||
	    cut(out->password, sizeof out->password, percent + 1, to) < 0)
		return "user or password is too long";
	if (!*out->user || !*out->password)
		return "user or password is empty";
	return NULL;
}

static const char *parse_target(const char *text, struct path_url *out)
{
	const char *slash = strrchr(text, '/');
	char name[3 * sizeof out->target];
	unsigned long lun;

	if (!slash || slash == text)
		return "target name and LUN are missing";
	if (parse_number(slash + 1, MAX_LUN, &lun) < 0)
		return "the LUN must be a number 0..16383";
	if (cut(name, sizeof name, text, slash) < 0 || decode(name) < 0 ||
	    strlen(name) >= sizeof out->target)
		return "the target name is too long or wrongly escaped";
	if (strncmp(name, "iqn.", 4) && strncmp(name, "eui.", 4) && strncmp(name, "naa.", 4))
		return "a target name begins with iqn., eui. or naa.";
	memcpy(out->target, name, strlen(name) + 1);
	out->lun = (unsigned)lun;
	return NULL;
}

int path_url_parse(const char *url, struct path_url *ret_url, struct err *err)
{
	static const char scheme[] = "iscsi://";
	struct path_url out = {0};
	char authority[3 * PART_MAX];
	const char *slash, *at, *from, *why;

	if (strncmp(url, scheme, sizeof scheme - 1))
		return refuse(err, url, "it does not begin with iscsi://");
	from = url + sizeof scheme - 1;
	slash = strchr(from, '/');
	if (!slash)
		return refuse(err, url, "target name and LUN are missing");
	if (cut(authority, sizeof authority, from, slash) < 0)
		return refuse(err, url, "it is too long");
	at = strrchr(authority, '@');
	why = at ? parse_user(authority, at, &out) : NULL;
	if (why) /* without the URL: it may carry a password */
		return refuse(err, "(with credentials)", why);
	why = parse_host(at ? at + 1 : authority, out.portal, sizeof out.portal);
	if (!why)
		why = parse_target(slash + 1, &out);
	if (why)
		return refuse(err, at ? slash : url, why);
	*ret_url = out;
	return 0;
}
