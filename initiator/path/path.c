/* SPDX-License-Identifier: MIT
 *
 * What all kinds of path share.
 */
#include "initiator/path/path.h"

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
