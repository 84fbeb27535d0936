/* SPDX-License-Identifier: MIT
 *
 * Who may reach which logical unit: rules by initiator name, source address and CHAP user.
 *
 * A rule allows what it has been granted for to initiators that match each of its criteria; a
 * criterion without entries matches everybody.  What no rule allows is refused: without names and
 * addresses that match, the initiator is the wrong one (0202); with them, it has only failed to be
 * the right user (0201).
 *
 * Pure.  Bounds: ACCESS_MAX_RULES rules; names and lists are borrowed from the lab file.
 */
#ifndef SANLAB_TARGET_ISCSI_ACCESS_H
#define SANLAB_TARGET_ISCSI_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cidr.h"
#include "target/scsi/scsi.h"

enum { ACCESS_MAX_RULES = 256 };

struct iscsi_access;

/* Lists of strings, NULL when COUNT is 0. */
struct access_list {
	const char *const *items;
	size_t count;
};

/* A peer as far as it is known. */
struct access_peer {
	const char *initiator_name; /* in lower case */
	uint8_t address[16];	    /* as cidr_parse_address gives it */
	const char *user;	    /* NULL: not authenticated */
	bool user_matters;	    /* false: before authentication, or where there is none */
};

enum access_verdict { ACCESS_ALLOWED, ACCESS_WRONG_INITIATOR, ACCESS_WRONG_USER };

struct iscsi_access *iscsi_access_new(void);
struct iscsi_access *iscsi_access_free(struct iscsi_access *access);
/* Initiator names may have '*' for any characters.  The number of the rule, or -EINVAL (an
 * address), -ENOSPC, -ENOMEM. */
int iscsi_access_add_rule(struct iscsi_access *access, const struct access_list *initiators,
			  const struct access_list *addresses, const struct access_list *users);
int iscsi_access_grant(struct iscsi_access *access, unsigned rule, const struct scsi_target *target,
		       unsigned lun);

/* ACCESS may be NULL: everybody. */
enum access_verdict iscsi_access_check_lun(const struct iscsi_access *access,
					   const struct scsi_target *target, unsigned lun,
					   const struct access_peer *peer);
/* The best verdict of all logical units. */
enum access_verdict iscsi_access_check(const struct iscsi_access *access,
				       const struct scsi_target *target,
				       const struct access_peer *peer);

/* Does TEXT match PATTERN, in which '*' stands for any characters? */
bool iscsi_pattern_match(const char *pattern, const char *text);

#endif
