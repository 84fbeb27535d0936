/* SPDX-License-Identifier: MIT
 *
 * The catalogue of drives.  No paper names the drives of its array, only capacity and speed class;
 * each row is therefore a candidate, taken from the named manual.  "Assumed" marks values the
 * manual at hand does not give.  Transfer rates are the mean of the inner and outer zone.
 */
#include "target/drive/drive.h"

#include <string.h>

#include "base/bytes.h"

#define GB	    UINT64_C(1000000000)
#define MB	    UINT64_C(1000000)
#define SEEK_MS(ms) ((uint64_t)((ms)*1e6))

const char *const drive_timing_names[] = {"none", "modelled", NULL};

/* In the order of `models` below. */
const char *const drive_model_names[] = {
    "sas-15k-600",  "sas-10k-600", "sas-10k-1200", "nlsas-7k2-2000",
    "sas-7k2-1000", "ssd-sas-200", NULL,
};

static const struct drive_model models[] = {
    /* Cheetah 15K.7 ST3600057SS (PS6100XV 3.5"): Seagate manual 100516226, values unverified:
     * 3.4/3.9 ms, 122..204 MB/s; overhead assumed as for the Savvio 10K.4. */
    {
	.name = "sas-15k-600",
	.size_bytes = 600 * GB,
	.rpm = 15000,
	.seek_read_ns = SEEK_MS(3.4),
	.seek_write_ns = SEEK_MS(3.9),
	.overhead_ns = SEEK_MS(0.2),
	.transfer_bytes_per_s = 163 * MB,
	.channels = 1,
    },
    /* Savvio 10K.4 ST9600204SS (PS6100X): Seagate product manual p9, documented: 3.8/4.4 ms,
     * +0.2 ms controller, 113 MB/s mean media rate. */
    {
	.name = "sas-10k-600",
	.size_bytes = 600 * GB,
	.rpm = 10000,
	.seek_read_ns = SEEK_MS(3.8),
	.seek_write_ns = SEEK_MS(4.4),
	.overhead_ns = SEEK_MS(0.2),
	.transfer_bytes_per_s = 113 * MB,
	.channels = 1,
    },
    /* Enterprise Performance 10K v7 ST1200MM0007 (ME4024): Seagate manual 100713202 rev C,
     * values unverified: 125..204 MB/s; seek and overhead assumed as for the Savvio 10K.4. */
    {
	.name = "sas-10k-1200",
	.size_bytes = 1200 * GB,
	.rpm = 10000,
	.seek_read_ns = SEEK_MS(3.8),
	.seek_write_ns = SEEK_MS(4.4),
	.overhead_ns = SEEK_MS(0.2),
	.transfer_bytes_per_s = 164500000,
	.channels = 1,
    },
    /* Constellation ES ST32000444SS (PS6100E, VNX): rates documented, 60..150 MB/s (manualsdump
     * 137021 p18); seek 8.5/9.5 ms unverified; overhead assumed. */
    {
	.name = "nlsas-7k2-2000",
	.size_bytes = 2000 * GB,
	.rpm = 7200,
	.seek_read_ns = SEEK_MS(8.5),
	.seek_write_ns = SEEK_MS(9.5),
	.overhead_ns = SEEK_MS(0.2),
	.transfer_bytes_per_s = 105 * MB,
	.channels = 1,
    },
    /* Constellation.2 ST91000640SS (QNAP ES1640DC): Seagate product manual rev H p11, documented:
     * 7.5/8.5 ms, +0.2 ms controller, 84..163 MB/s internal. */
    {
	.name = "sas-7k2-1000",
	.size_bytes = 1000 * GB,
	.rpm = 7200,
	.seek_read_ns = SEEK_MS(7.5),
	.seek_write_ns = SEEK_MS(8.5),
	.overhead_ns = SEEK_MS(0.2),
	.transfer_bytes_per_s = 123500000,
	.channels = 1,
    },
    /* A 200 GB SAS SSD (QNAP read cache, model not named): all values assumed.  Eight channels of
     * 64 MB/s fill a 6 Gbit/s link; a 4 KiB read takes 0.12 ms, 65,000 of them a second. */
    {
	.name = "ssd-sas-200",
	.size_bytes = 200 * GB,
	.rpm = 0,
	.overhead_ns = 60000,
	.transfer_bytes_per_s = 64 * MB,
	.channels = 8,
    },
};

_Static_assert(ARRAY_SIZE(models) + 1 == ARRAY_SIZE(drive_model_names), "one name a model");

const struct drive_model *drive_model_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	return NULL;
}
