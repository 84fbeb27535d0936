/* SPDX-License-Identifier: MIT
 *
 * Secrets and access rules of a target, from the lab file's group.
 */
#ifndef SANLAB_TARGET_SECURITY_H
#define SANLAB_TARGET_SECURITY_H

#include "target/export.h"
#include "target/iscsi/iscsi.h"

struct target_security {
	struct chap_secrets *secrets;
	struct iscsi_access *access;
};

/* Reads the secrets file and lets SERVER know who may reach which of EXPORTS.  -EINVAL: the lab or
 * the file is wrong; others: the file cannot be used.  ERR is filled. */
int target_security_open(const struct group_config *config, const char *lab_name,
			 struct group *group, const struct exports *exports,
			 struct iscsi_server *server, struct target_security *ret_security,
			 struct err *err);
void target_security_close(struct target_security *security); /* after the server; also zeroed */

#endif
