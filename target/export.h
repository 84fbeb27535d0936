/* SPDX-License-Identifier: MIT
 *
 * What the group shows to initiators: its volumes as logical units of SCSI targets.  Style
 * equallogic: one target a volume, LUN 0.  Style lun: one target, volumes are LUNs in the lab
 * file's order.  Transports (target/iscsi, harness/sim) are put on top.
 *
 * Threading: the loop's thread.  Ownership: exports own device and targets, not the volumes.
 */
#ifndef SANLAB_TARGET_EXPORT_H
#define SANLAB_TARGET_EXPORT_H

#include "target/array/array.h"
#include "target/scsi/scsi.h"

struct exports {
	enum group_style style;
	struct scsi_device *device;
	struct scsi_target **targets;
	size_t count;
};

/* iqn.2026-11.test.sanlab:LAB:VOLUME (style equallogic) or iqn.2026-11.test.sanlab:LAB (style
 * lun).  Returns as snprintf. */
int export_iqn(char *out, size_t size, enum group_style style, const char *lab, const char *volume);

int exports_open(struct loop *loop, struct buf_pool *buffers, struct group *group,
		 enum group_style style, const char *lab_name, struct exports *ret_exports);
void exports_close(struct exports *exports); /* also half-built or zeroed ones */
/* The target and LUN of a volume; NULL when there is none. */
struct scsi_target *exports_find(const struct exports *exports, struct group *group,
				 const char *lab_name, const char *volume, unsigned *ret_lun);

#endif
