/* SPDX-License-Identifier: MIT
 *
 * Volumes become logical units of SCSI targets.
 */
#include "target/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IQN_BYTES = 224 };

int export_iqn(char *out, size_t size, enum group_style style, const char *lab, const char *volume)
{
	if (style == GROUP_STYLE_LUN)
		return snprintf(out, size, "iqn.2026-11.test.sanlab:%s", lab);
	return snprintf(out, size, "iqn.2026-11.test.sanlab:%s:%s", lab, volume);
}

static int add_volume(struct exports *exports, const char *lab_name, struct volume *volume,
		      unsigned index)
{
	bool shared = exports->style == GROUP_STYLE_LUN;
	struct scsi_lu *lu = scsi_device_add(exports->device, volume);

	if (!lu)
		return -ENOMEM;
	if (!shared || !exports->count) {
		char iqn[IQN_BYTES];
		struct scsi_target *made;

		export_iqn(iqn, sizeof iqn, exports->style, lab_name, volume_name(volume));
		made = scsi_target_new(exports->device, iqn);
		if (!made)
			return -ENOMEM;
		exports->targets[exports->count++] = made;
	}
	return scsi_target_add_lun(exports->targets[exports->count - 1], shared ? index : 0, lu);
}

int exports_open(struct loop *loop, struct buf_pool *buffers, struct group *group,
		 enum group_style style, const char *lab_name, struct exports *ret_exports)
{
	size_t volumes = group_volume_count(group);
	struct exports exports = {.style = style, .device = scsi_device_new(loop, buffers)};
	int r = 0;

	exports.targets = calloc(volumes + 1, sizeof(struct scsi_target *));
	if (!exports.device || !exports.targets)
		r = -ENOMEM;
	for (size_t i = 0; !r && i < volumes; i++)
		r = add_volume(&exports, lab_name, group_volume(group, i), (unsigned)i);
	if (r) {
		exports_close(&exports);
		return r;
	}
	*ret_exports = exports;
	return 0;
}

void exports_close(struct exports *exports)
{
	for (size_t i = 0; i < exports->count; i++)
		scsi_target_free(exports->targets[i]);
	free(exports->targets);
	if (exports->device)
		scsi_device_free(exports->device);
	*exports = (struct exports){0};
}

struct scsi_target *exports_find(const struct exports *exports, struct group *group,
				 const char *lab_name, const char *volume, unsigned *ret_lun)
{
	char iqn[IQN_BYTES];

	export_iqn(iqn, sizeof iqn, exports->style, lab_name, volume);
	for (size_t i = 0; i < group_volume_count(group); i++) {
		if (strcmp(volume_name(group_volume(group, i)), volume) != 0)
			continue;
		*ret_lun = exports->style == GROUP_STYLE_LUN ? (unsigned)i : 0;
		for (size_t j = 0; j < exports->count; j++)
			if (!strcmp(scsi_target_name(exports->targets[j]), iqn))
				return exports->targets[j];
	}
	return NULL;
}
