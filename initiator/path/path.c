/* SPDX-License-Identifier: MIT
 *
 * What all kinds of path share.
 */
#include "initiator/path/path.h"

#include "base/bytes.h"

const char *const path_detect_names[] = {
    [PATH_DETECT_NONE] = "none",
    [PATH_DETECT_RESET] = "reset",
    [PATH_DETECT_CLOSED] = "closed",
    [PATH_DETECT_TCP_TIMEOUT] = "tcp-timeout",
    [PATH_DETECT_KEEPALIVE] = "keep-alive",
    [PATH_DETECT_COMMAND] = "command-timeout",
    [PATH_DETECT_LOGIN] = "login",
    [PATH_DETECT_PROTOCOL] = "protocol",
    [PATH_DETECT_LINK] = "link",
    [PATH_DETECT_SENSE] = "sense",
    [PATH_DETECT_ASKED] = "asked",
    [PATH_DETECT_COUNT] = NULL,
};

static void preset(uint64_t *value, uint64_t otherwise)
{
	if (!*value)
		*value = otherwise;
}

void path_config_defaults(struct path_config *config)
{
	preset(&config->login_timeout_ns, 5 * NS_PER_S);
	preset(&config->tcp_user_timeout_ns, 1500 * NS_PER_MS);
	preset(&config->keepalive_ns, 400 * NS_PER_MS);
	preset(&config->io_timeout_ns, 5 * NS_PER_S);
	if (!config->keepalive_misses)
		config->keepalive_misses = 2;
	if (!config->max_in_flight)
		config->max_in_flight = 128;
}
