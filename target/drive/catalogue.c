/* SPDX-License-Identifier: MIT
 *
 * The catalogue of drives.  No paper names the drives of its array, only capacity and speed class;
 * each row is therefore a candidate.  Marks: D documented in the named manual, U unverified (a
 * recollection of a public data sheet), C calculated from other values of the row, A assumed by one
 * of these rules:
 *
 *   A1 track to track   10K, 15K: 0.30/0.56 ms read/write (Savvio 10K.4, D); 7.2K: 0.23/0.44 ms
 *                       (Constellation.2, D)
 *   A2 full stroke      the average in the proportion of the documented drive of its kind: 10K,
 * 15K: 7.81/3.8 read, 8.18/4.4 write (Savvio 10K.4); 7.2K: 17.06/7.5, 18.08/8.5 (Constellation.2)
 *   A3 zones            where only one rate is known: inner : outer as documented for a sibling
 *   A4 overhead         0.2 ms (D for Savvio 10K.4 and Constellation.2)
 *   A5 buffer           16 MiB for 10K and 15K, 64 MiB for 7.2K
 *   A6 heads            of the sibling, by capacity.  They matter little: a switch of heads and one
 *                       of cylinders cost the same, and are within the sustained rate
 *   A7 queue            SAS 128 commands; SATA 32 (the tags of native command queueing)
 *   A8 link             the interface's rate after 8b/10b coding: 600 or 300 MB/s
 *
 * Cylinders follow from capacity, heads and rates (disk_geometry.h).  Where a manual's tracks and
 * bytes a track contradict its rates, the rates win: they are what a host sees.  The "max" column
 * of HGST's manuals is the worst average a drive may have, not the full stroke, so it is not used.
 */
#include "target/drive/drive.h"

#include <string.h>

#include "base/bytes.h"

#define GB	  UINT64_C(1000000000)
#define MB	  UINT64_C(1000000)
#define NS_MS(ms) ((uint64_t)((ms)*1e6 + 0.5))

#define SEEK(track, average, full)                        \
	{                                                 \
		NS_MS(track), NS_MS(average), NS_MS(full) \
	}
/* A1 and A2. */
#define SEEK_FAST_READ(average)	 SEEK(0.30, average, (average)*7.81 / 3.8)
#define SEEK_FAST_WRITE(average) SEEK(0.56, average, (average)*8.18 / 4.4)
#define SEEK_7K2_READ(average)	 SEEK(0.23, average, (average)*17.06 / 7.5)
#define SEEK_7K2_WRITE(average)	 SEEK(0.44, average, (average)*18.08 / 8.5)

const char *const drive_timing_names[] = {"none", "modelled", NULL};

static const struct drive_model models[] = {
    /* Cheetah 15K.7 ST3600057SS, 3.5" (PS6100XV 3.5"): Seagate manual 100516226: seeks U, 2.0 ms
     * rotation U, 122..204 MB/s U; 4 disks, 8 heads U; A1 A2 A4 A5 A7 A8. */
    {
	.name = "sas-15k-600",
	.size_bytes = 600 * GB,
	.rpm = 15000,
	.heads = 8,
	.seek_read = SEEK_FAST_READ(3.4),
	.seek_write = SEEK_FAST_WRITE(3.9),
	.outer_bytes_per_s = 204 * MB,
	.inner_bytes_per_s = 122 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 16 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Savvio 10K.4 ST9600204SS, 2.5" (PS6100X): Seagate product manual p9: all three seeks, 0.2 ms
     * controller, 6 heads D; 113 MB/s mean media rate C (677,557 bytes a track); inner and outer
     * by A3 around it as 67 : 124 (Savvio 10K.3, manual p19, D); A5 A7 A8. */
    {
	.name = "sas-10k-600",
	.size_bytes = 600 * GB,
	.rpm = 10000,
	.heads = 6,
	.seek_read = SEEK(0.30, 3.8, 7.81),
	.seek_write = SEEK(0.56, 4.4, 8.18),
	.outer_bytes_per_s = 113 * MB * 2 * 124 / (67 + 124),
	.inner_bytes_per_s = 113 * MB * 2 * 67 / (67 + 124),
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 16 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Enterprise Performance 10K v7 ST1200MM0007, 2.5" (ME4024): Seagate manual 100713202 rev C:
     * 125..204 MB/s U; seeks as the Savvio 10K.4 A; 8 heads A6; A4 A5 A7 A8. */
    {
	.name = "sas-10k-1200",
	.size_bytes = 1200 * GB,
	.rpm = 10000,
	.heads = 8,
	.seek_read = SEEK(0.30, 3.8, 7.81),
	.seek_write = SEEK(0.56, 4.4, 8.18),
	.outer_bytes_per_s = 204 * MB,
	.inner_bytes_per_s = 125 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 16 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Constellation ES ST32000444SS, 3.5" (PS6100E, VNX): 60..150 MB/s, 4.16 ms rotation D
     * (manualsdump 137021 p18); average seeks U; 8 heads A6; A1 A2 A4 A5 A7 A8. */
    {
	.name = "nlsas-7k2-2000",
	.size_bytes = 2000 * GB,
	.rpm = 7200,
	.heads = 8,
	.seek_read = SEEK_7K2_READ(8.5),
	.seek_write = SEEK_7K2_WRITE(9.5),
	.outer_bytes_per_s = 150 * MB,
	.inner_bytes_per_s = 60 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 64 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Constellation.2 ST91000640SS, 2.5" (QNAP ES1640DC): Seagate product manual rev H p11: all
     * three seeks, 0.2 ms controller, 8 heads, 84..163 MB/s internal D (taken as sustained);
     * A5 A7 A8. */
    {
	.name = "sas-7k2-1000",
	.size_bytes = 1000 * GB,
	.rpm = 7200,
	.heads = 8,
	.seek_read = SEEK(0.23, 7.5, 17.06),
	.seek_write = SEEK(0.44, 8.5, 18.08),
	.outer_bytes_per_s = 163 * MB,
	.inner_bytes_per_s = 84 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 64 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* A 200 GB SAS SSD (QNAP read cache, model not named): all values A.  Eight channels of 64 MB/s
     * nearly fill a 6 Gbit/s link; a 4 KiB read takes 0.12 ms, 65,000 of them a second; a write
     * 0.19 ms, 43,000 (no cache that power loss empties). */
    {
	.name = "ssd-sas-200",
	.size_bytes = 200 * GB,
	.overhead_ns = NS_MS(0.02),
	.channels = 8,
	.read_latency_ns = NS_MS(0.04),
	.write_latency_ns = NS_MS(0.11),
	.transfer_bytes_per_s = 64 * MB,
	.queue_depth = 128,
    },
    /* Ultrastar C15K600, 2.5": HGST manual p27: average seeks D; rotation C; rates as the
     * Cheetah 15K.7 A3; 6 heads A6; A1 A2 A4 A5 A7 A8. */
    {
	.name = "sas-15k-600-sff",
	.size_bytes = 600 * GB,
	.rpm = 15000,
	.heads = 6,
	.seek_read = SEEK_FAST_READ(2.9),
	.seek_write = SEEK_FAST_WRITE(3.1),
	.outer_bytes_per_s = 204 * MB,
	.inner_bytes_per_s = 122 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 16 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Savvio 10K.5 ST9900805SS, 2.5" (PS6100X): Seagate manual 100628561: 93..168 MB/s U; seeks as
     * the Savvio 10K.4 A; 8 heads A6; A4 A5 A7 A8. */
    {
	.name = "sas-10k-900",
	.size_bytes = 900 * GB,
	.rpm = 10000,
	.heads = 8,
	.seek_read = SEEK(0.30, 3.8, 7.81),
	.seek_write = SEEK(0.56, 4.4, 8.18),
	.outer_bytes_per_s = 168 * MB,
	.inner_bytes_per_s = 93 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 16 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Constellation ES.3 SAS, 3.5", 1, 3 and 4 TB (PS6100E, PS4100E): Seagate manual p14: 83..175
     * MB/s, 4.16 ms rotation, heads 3, 8, 10 D; average seeks as the Constellation ES A; A1 A2 A4
     * A5 A7 A8. */
    {
	.name = "nlsas-7k2-1000",
	.size_bytes = 1000 * GB,
	.rpm = 7200,
	.heads = 3,
	.seek_read = SEEK_7K2_READ(8.5),
	.seek_write = SEEK_7K2_WRITE(9.5),
	.outer_bytes_per_s = 175 * MB,
	.inner_bytes_per_s = 83 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 64 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    {
	.name = "nlsas-7k2-3000",
	.size_bytes = 3000 * GB,
	.rpm = 7200,
	.heads = 8,
	.seek_read = SEEK_7K2_READ(8.5),
	.seek_write = SEEK_7K2_WRITE(9.5),
	.outer_bytes_per_s = 175 * MB,
	.inner_bytes_per_s = 83 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 64 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    {
	.name = "nlsas-7k2-4000",
	.size_bytes = 4000 * GB,
	.rpm = 7200,
	.heads = 10,
	.seek_read = SEEK_7K2_READ(8.5),
	.seek_write = SEEK_7K2_WRITE(9.5),
	.outer_bytes_per_s = 175 * MB,
	.inner_bytes_per_s = 83 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 64 * MIB,
	.link_bytes_per_s = 600 * MB,
	.queue_depth = 128,
    },
    /* Constellation ES ST32000644NS, 3.5" SATA: 140 MB/s at most D (manualsdump 136820 p12), inner
     * by A3 as 60 : 150 (its SAS sibling); average seeks as that one A; A1 A2 A4 A5 A6 A7 A8. */
    {
	.name = "sata-7k2-2000",
	.size_bytes = 2000 * GB,
	.rpm = 7200,
	.heads = 8,
	.seek_read = SEEK_7K2_READ(8.5),
	.seek_write = SEEK_7K2_WRITE(9.5),
	.outer_bytes_per_s = 140 * MB,
	.inner_bytes_per_s = 56 * MB,
	.overhead_ns = NS_MS(0.2),
	.buffer_bytes = 64 * MIB,
	.link_bytes_per_s = 300 * MB,
	.queue_depth = 32,
    },
    /* A 400 GB SATA SSD (no preset names one): all values A.  A 4 KiB read takes 0.16 ms; 32 tags
     * over eight channels; slower writes than the SAS one. */
    {
	.name = "ssd-sata-400",
	.size_bytes = 400 * GB,
	.overhead_ns = NS_MS(0.03),
	.channels = 8,
	.read_latency_ns = NS_MS(0.06),
	.write_latency_ns = NS_MS(0.22),
	.transfer_bytes_per_s = 60 * MB,
	.queue_depth = 32,
    },
};

/* In the order of `models`. */
const char *const drive_model_names[] = {
    "sas-15k-600",     "sas-10k-600",
    "sas-10k-1200",    "nlsas-7k2-2000",
    "sas-7k2-1000",    "ssd-sas-200",
    "sas-15k-600-sff", "sas-10k-900",
    "nlsas-7k2-1000",  "nlsas-7k2-3000",
    "nlsas-7k2-4000",  "sata-7k2-2000",
    "ssd-sata-400",    NULL,
};

_Static_assert(ARRAY_SIZE(models) + 1 == ARRAY_SIZE(drive_model_names), "one name a model");

const struct drive_model *drive_model_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	return NULL;
}
