/* SPDX-License-Identifier: MIT
 *
 * MPIO's part of the lab file (`hosts: [{mpio: ...}]`) and how its timeouts reach the paths.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/mpio/mpio.h"

static const char *const mpio_fence_names[] = {
    [MPIO_FENCE_RESET] = "reset",
    [MPIO_FENCE_STRICT] = "strict",
    [MPIO_FENCE_NONE] = "none",
    NULL,
};
static const char *const failback_names[] = {"auto", "manual", NULL};

static const struct cfg_field override_fields[] = {
    {"volume", CFG_STRING, offsetof(struct mpio_override, volume),
     .help = "a volume (or lun) of the host"},
    {"hardware", CFG_STRING, offsetof(struct mpio_override, hardware),
     .help = "what vendor and product of the unit begin with, as INQUIRY tells them"},
    {"policy", CFG_ENUM, offsetof(struct mpio_override, policy), .required = true,
     .names = mpio_policy_names, .help = "how the next path is chosen there"},
};
static const struct cfg_schema override_schema = {"policies", sizeof(struct mpio_override),
						  override_fields, ARRAY_SIZE(override_fields)};

static const struct cfg_field mpio_fields[] = {
    {"policy", CFG_ENUM, offsetof(struct mpio_config, policy), .preset = "round-robin",
     .names = mpio_policy_names, .help = "how the next path is chosen"},
    {"policies", CFG_LIST, offsetof(struct mpio_config, overrides), .sub = &override_schema,
     .help = "other policies for single volumes or makes of array"},
    {"rr-ios", CFG_UINT, offsetof(struct mpio_config, rr_ios), .min = 1, .max = 1000000,
     .help = "round-robin: I/Os on one path before the next takes over; 1 without rr-bytes"},
    {"rr-bytes", CFG_SIZE, offsetof(struct mpio_config, rr_bytes), .min = 512, .max = 1e15,
     .help = "round-robin: bytes on one path before the next takes over (or rr-ios before)"},
    {"preferred-path", CFG_UINT, offsetof(struct mpio_config, preferred_path), .preset = "0",
     .max = 63, .help = "failover-only: the path used while it is up, counted from 0"},
    {"failback", CFG_ENUM, offsetof(struct mpio_config, failback), .preset = "auto",
     .names = failback_names,
     .help = "failover-only: auto: back to the preferred path; manual: stay while it works"},
    {"primary-paths", CFG_UINTS, offsetof(struct mpio_config, primary_paths), .max = 63,
     .help = "round-robin-subset: paths in use while one of them is left; else the optimized"},
    {"weights", CFG_UINTS, offsetof(struct mpio_config, weights), .max = 1e6,
     .help = "weighted-paths: one a path; the lowest that is up takes all I/O"},
    {"throughput", CFG_UINTS, offsetof(struct mpio_config, throughput), .max = 100,
     .help = "service-time: relative, one a path; 0: only when there is no other"},
    {"use-non-optimized", CFG_BOOL, offsetof(struct mpio_config, use_non_optimized),
     .preset = "false", .help = "ALUA: non-optimized paths count as optimized ones"},
    {"slice-refresh", CFG_DURATION, offsetof(struct mpio_config, slice_refresh_ns), .preset = "5s",
     .min = 10e6, .max = 86400e9, .help = "slice-aware: how often the slice map is asked for"},
    {"sessions-per-volume", CFG_UINT, offsetof(struct mpio_config, volume_sessions), .min = 1,
     .max = 12, .help = "EqualLogic: at most that many paths; 6 with sessions-per-slice alone"},
    {"sessions-per-slice", CFG_UINT, offsetof(struct mpio_config, slice_sessions), .min = 1,
     .max = 4, .help = "EqualLogic: at most that many to each member; 2 unless given"},
    {"no-path", CFG_STRING, offsetof(struct mpio_config, no_path), .preset = "queue 20s",
     .help =
	 "without a path I/O fails (fail), waits (queue), or waits for so long (20s, queue 20s)"},
    {"reconnect-min", CFG_DURATION, offsetof(struct mpio_config, reconnect_min_ns),
     .preset = "250ms", .min = 1e6, .max = 3600e9,
     .help = "wait before the first new login of a lost path; doubles with each failure"},
    {"reconnect-max", CFG_DURATION, offsetof(struct mpio_config, reconnect_max_ns), .preset = "4s",
     .min = 1e6, .max = 3600e9, .help = "longest wait between two logins"},
    {"io-timeout", CFG_DURATION, offsetof(struct mpio_config, io_timeout_ns), .preset = "5s",
     .min = 1e6, .max = 3600e9, .help = "no answer for that long: the path counts as lost"},
    {"keepalive", CFG_DURATION, offsetof(struct mpio_config, keepalive_ns), .preset = "400ms",
     .min = 1e6, .max = 3600e9, .help = "interval of NOPs while nothing is heard on a path"},
    {"keepalive-misses", CFG_UINT, offsetof(struct mpio_config, keepalive_misses), .preset = "2",
     .min = 1, .max = 1000, .help = "NOPs unanswered in a row before the path counts as lost"},
    {"tcp-user-timeout", CFG_DURATION, offsetof(struct mpio_config, tcp_user_timeout_ns),
     .preset = "1500ms", .min = 1e6, .max = 3600e9,
     .help = "unacknowledged TCP data older than that ends the connection"},
    {"login-timeout", CFG_DURATION, offsetof(struct mpio_config, login_timeout_ns), .preset = "5s",
     .min = 1e6, .max = 3600e9, .help = "how long one login may take"},
    {"max-retries", CFG_UINT, offsetof(struct mpio_config, max_retries), .preset = "30",
     .max = 1000000, .help = "retries of one I/O after BUSY, unit attention and the like"},
    {"queue-depth", CFG_UINT, offsetof(struct mpio_config, queue_depth), .preset = "128", .min = 1,
     .max = 4096, .help = "I/Os in flight on one path"},
    {"header-digest", CFG_BOOL, offsetof(struct mpio_config, header_digest), .preset = "false",
     .help = "asks for CRC32C header digests"},
    {"failback-delay", CFG_DURATION, offsetof(struct mpio_config, failback_delay_ns),
     .preset = "0s", .max = 3600e9,
     .help = "a path that has come back carries I/O before that only when there is no other"},
    {"marginal-errors", CFG_UINT, offsetof(struct mpio_config, marginal_errors), .preset = "5",
     .max = 1000, .help = "losses, aborts and slow answers that make a path degraded; 0: never"},
    {"marginal-forget", CFG_DURATION, offsetof(struct mpio_config, marginal_forget_ns),
     .preset = "20s", .min = 1e6, .max = 3600e9,
     .help = "after that long one of them is forgotten; all: the path is well again"},
    {"alua-explicit", CFG_BOOL, offsetof(struct mpio_config, alua_explicit), .preset = "false",
     .help = "ask for an optimized path (SET TARGET PORT GROUPS) when there is none"},
    {"alua-poll", CFG_DURATION, offsetof(struct mpio_config, alua_poll_ns), .preset = "10s",
     .max = 3600e9, .help = "ask for access states at least that often; 0s: only with a reason"},
    {"transition-timeout", CFG_DURATION, offsetof(struct mpio_config, transition_ns),
     .preset = "60s", .min = 1e6, .max = 3600e9,
     .help = "longest access state transition, unless the unit tells one"},
    {"fence", CFG_ENUM, offsetof(struct mpio_config, fence), .preset = "reset",
     .names = mpio_fence_names,
     .help = "what must end a lost path's old session before its blocks are written anew: a new "
	     "login with its name (strict), or else a reset of the unit (reset); none: nothing"},
    {"fence-hold", CFG_DURATION, offsetof(struct mpio_config, fence_hold_ns), .preset = "5s",
     .min = 1e6, .max = 3600e9,
     .help = "fence: reset: how long after the loss what was sent may still arrive"},
    {"fence-wait", CFG_DURATION, offsetof(struct mpio_config, fence_wait_ns), .preset = "60s",
     .min = 1e6, .max = 3600e9,
     .help = "a write of such blocks that has waited for that long fails"},
    {"fence-limit", CFG_UINT, offsetof(struct mpio_config, fence_limit), .preset = "8192",
     .min = 16, .max = 1000000,
     .help = "lost writes remembered; writes wait when there may be more"},
    {"fence-unknown-group", CFG_BOOL, offsetof(struct mpio_config, fence_unknown_group),
     .preset = "false",
     .help = "end it through another portal also when no target portal group is told"},
};

const struct cfg_schema mpio_schema = {"mpio", sizeof(struct mpio_config), mpio_fields,
				       ARRAY_SIZE(mpio_fields)};

int mpio_parse_no_path(const char *text, uint64_t *ret_ns)
{
	static const char queue[] = "queue";
	uint64_t ns = 0;
	char why[8];

	if (strcmp(text, "fail") == 0) {
		*ret_ns = 0;
		return 0;
	}
	if (strncmp(text, queue, sizeof queue - 1) == 0) {
		text += sizeof queue - 1;
		if (*text == 0) {
			*ret_ns = MPIO_FOREVER;
			return 0;
		}
		if (*text++ != ' ')
			return -EINVAL;
	}
	if (cfg_parse_scalar(CFG_DURATION, text, &ns, why, sizeof why) < 0 || ns > 3600 * NS_PER_S)
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

void mpio_config_check(struct cfg *cfg, struct mpio_config *config)
{
	if (!config->no_path || !cfg_valid(cfg, &config->no_path) ||
	    mpio_parse_no_path(config->no_path, &config->no_path_ns) == 0)
		return;
	cfg_error_at(cfg, &config->no_path, "'no-path' is neither fail, queue nor a duration");
	cfg_hint(cfg, "as in 'no-path: queue 20s', at most 1h");
}

void mpio_path_config(const struct mpio_config *config, struct path_config *out)
{
	out->login_timeout_ns = config->login_timeout_ns;
	out->tcp_user_timeout_ns = config->tcp_user_timeout_ns;
	out->keepalive_ns = config->keepalive_ns;
	out->keepalive_misses = (unsigned)config->keepalive_misses;
	out->io_timeout_ns = config->io_timeout_ns;
	out->max_in_flight = (unsigned)config->queue_depth;
	out->header_digest = config->header_digest;
}
