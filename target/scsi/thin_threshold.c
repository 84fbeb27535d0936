/* SPDX-License-Identifier: MIT
 *
 * The soft threshold of thin provisioning (SBC-3 4.7.3.8): when the pool's use passes the volume's
 * threshold, every nexus is told once, and again only after the use has fallen clearly below it.
 *
 * The use is looked at when a command comes: that is when a unit attention can be told at all.
 */
#include "target/scsi/internal.h"

enum { HYSTERESIS_PERCENT = 5 };

void scsi_threshold_check(struct scsi_lu *lu)
{
	uint64_t used_bytes, total_bytes, percent;
	unsigned threshold = volume_thin_threshold_percent(lu->volume);

	if (threshold == 0 || !volume_is_thin(lu->volume))
		return;
	volume_pool_space(lu->volume, &used_bytes, &total_bytes);
	percent = total_bytes > 0 ? used_bytes * 100 / total_bytes : 100;
	if (!lu->threshold_reached && percent >= threshold) {
		lu->threshold_reached = true;
		scsi_ua_broadcast(lu, NULL, SENSE_UA_SOFT_THRESHOLD);
	} else if (percent + HYSTERESIS_PERCENT < threshold) {
		lu->threshold_reached = false;
	}
}
