/* SPDX-License-Identifier: MIT
 *
 * Access rules.
 */
#include "target/iscsi/access.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct access_rule {
	struct access_list initiators, users;
	struct cidr *ranges;
	size_t range_count;
};

struct access_grant {
	const struct scsi_target *target;
	unsigned lun, rule;
};

struct iscsi_access {
	struct access_rule rules[ACCESS_MAX_RULES];
	size_t rule_count;
	struct access_grant *grants;
	size_t grant_count;
};

struct iscsi_access *iscsi_access_new(void)
{
	return calloc(1, sizeof(struct iscsi_access));
}

struct iscsi_access *iscsi_access_free(struct iscsi_access *access)
{
	if (!access)
		return NULL;
	for (size_t i = 0; i < access->rule_count; i++)
		free(access->rules[i].ranges);
	free(access->grants);
	free(access);
	return NULL;
}

int iscsi_access_add_rule(struct iscsi_access *access, const struct access_list *initiators,
			  const struct access_list *addresses, const struct access_list *users)
{
	struct access_rule *rule = &access->rules[access->rule_count];

	if (access->rule_count == ACCESS_MAX_RULES)
		return -ENOSPC;
	*rule = (struct access_rule){.initiators = *initiators, .users = *users};
	rule->ranges = calloc(addresses->count + 1, sizeof *rule->ranges);
	if (!rule->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < addresses->count; i++) {
		if (cidr_parse(addresses->items[i], &rule->ranges[i]) < 0) {
			free(rule->ranges);
			return -EINVAL;
		}
	}
	rule->range_count = addresses->count;
	return (int)access->rule_count++;
}

int iscsi_access_grant(struct iscsi_access *access, unsigned rule, const struct scsi_target *target,
		       unsigned lun)
{
	struct access_grant *larger =
	    realloc(access->grants, (access->grant_count + 1) * sizeof *larger);

	if (!larger)
		return -ENOMEM;
	larger[access->grant_count++] = (struct access_grant){target, lun, rule};
	access->grants = larger;
	return 0;
}

bool iscsi_pattern_match(const char *pattern, const char *text)
{
	const char *star = NULL, *back = NULL;

	/* After a mismatch the last star takes one character more: no recursion, no blow-up. */
	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			back = text;
		} else if (tolower((unsigned char)*pattern) == tolower((unsigned char)*text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++back;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

static bool list_matches(const struct access_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++) {
		if (iscsi_pattern_match(list->items[i], text))
			return true;
	}
	return list->count == 0;
}

static bool list_holds(const struct access_list *list, const char *text)
{
	for (size_t i = 0; text && i < list->count; i++) {
		if (strcmp(list->items[i], text) == 0)
			return true;
	}
	return list->count == 0;
}

static bool ranges_match(const struct access_rule *rule, const uint8_t address[16])
{
	for (size_t i = 0; i < rule->range_count; i++) {
		if (cidr_has(&rule->ranges[i], address))
			return true;
	}
	return rule->range_count == 0;
}

static enum access_verdict rule_check(const struct access_rule *rule,
				      const struct access_peer *peer)
{
	if (!list_matches(&rule->initiators, peer->initiator_name) ||
	    !ranges_match(rule, peer->address))
		return ACCESS_WRONG_INITIATOR;
	if (peer->user_matters && !list_holds(&rule->users, peer->user))
		return ACCESS_WRONG_USER;
	return ACCESS_ALLOWED;
}

/* Over the grants of TARGET, of LUN alone unless it is negative. */
static enum access_verdict grants_check(const struct iscsi_access *access,
					const struct scsi_target *target, int lun,
					const struct access_peer *peer)
{
	enum access_verdict best = ACCESS_WRONG_INITIATOR;

	if (!access)
		return ACCESS_ALLOWED;
	for (size_t i = 0; i < access->grant_count && best != ACCESS_ALLOWED; i++) {
		const struct access_grant *grant = &access->grants[i];
		enum access_verdict verdict;

		if (grant->target != target || (lun >= 0 && grant->lun != (unsigned)lun))
			continue;
		verdict = rule_check(&access->rules[grant->rule], peer);
		if (verdict == ACCESS_ALLOWED || best == ACCESS_WRONG_INITIATOR)
			best = verdict;
	}
	return best;
}

enum access_verdict iscsi_access_check_lun(const struct iscsi_access *access,
					   const struct scsi_target *target, unsigned lun,
					   const struct access_peer *peer)
{
	return grants_check(access, target, (int)lun, peer);
}

enum access_verdict iscsi_access_check(const struct iscsi_access *access,
				       const struct scsi_target *target,
				       const struct access_peer *peer)
{
	return grants_check(access, target, -1, peer);
}
