/* SPDX-License-Identifier: MIT
 *
 * The sizing's table and lab.
 */
#include "harness/lab/size_lab.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/workload/exchange_profile.h"
#include "target/array/array.h"
#include "target/drive/drive.h"

enum { CHUNK_BYTES = 65536, VOLUMES_MAX = 200 };
#define USED_SHARE 0.98

/* A page somewhere on the drive: seek, half a turn, transfer. */
static double drive_iops(const struct drive_model *drive)
{
	double ns = (double)drive->overhead_ns;

	if (!drive->rpm)
		return 1e9 * drive->channels /
		       (ns + (double)drive->read_latency_ns +
			(double)EXCHANGE_PAGE_BYTES * 1e9 / (double)drive->transfer_bytes_per_s);
	ns += (double)drive->seek_read.average_ns + 60e9 / drive->rpm / 2;
	ns += (double)EXCHANGE_PAGE_BYTES * 2e9 /
	      (double)(drive->outer_bytes_per_s + drive->inner_bytes_per_s);
	return 1e9 / ns;
}

/* Drive I/Os of a write smaller than a stripe. */
static double write_cost(const char *raid)
{
	static const struct {
		const char *level;
		double ios;
	} costs[] = {{"raid0", 1},  {"raid1", 2}, {"raid10", 2}, {"raid5", 4},
		     {"raid50", 4}, {"raid6", 6}, {"raid60", 6}, {"adapt", 6}};

	for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
		if (strcmp(costs[i].level, raid) == 0)
			return costs[i].ios;
	}
	return 6;
}

static unsigned whole(double count)
{
	return (unsigned)fmin(1e6, fmax(1, ceil(count - 1e-9)));
}

static unsigned arrays_for(const struct exchange_sizing *sizing, double usable_bytes)
{
	double each = floor(usable_bytes / sizing->volume_bytes);

	return each < 1 ? whole(sizing->total_bytes / usable_bytes)
			: whole((double)sizing->demand.databases / each);
}

void size_array(const struct exchange_sizing *sizing, int model, struct size_array *ret_array)
{
	struct size_array array = {0};
	const struct drive_model *drive;
	unsigned active;

	preset_facts(model, &array.facts);
	drive = drive_model_find(array.facts.drive);
	active = array.facts.drives - array.facts.spares;
	array.drive_iops = drive_iops(drive);
	/* Log writes are sequential and small: the write cache makes whole stripes of them. */
	array.backend_iops =
	    sizing->reads + sizing->writes * write_cost(array.facts.raid) + sizing->bdm_reads;
	array.usable_bytes = (double)raid_find(array.facts.raid)
				 ->usable_bytes(active, drive->size_bytes, CHUNK_BYTES);
	array.iops_drives = whole(array.backend_iops / array.drive_iops);
	array.for_iops = whole((double)array.iops_drives / active);
	/* Whole volumes in each, and a little for the array's own records. */
	array.for_space = arrays_for(sizing, array.usable_bytes * USED_SHARE);
	array.count = MAX_OF(array.for_iops, array.for_space);
	array.drives = array.count * array.facts.drives;
	*ret_array = array;
}

__attribute__((format(printf, 3, 4))) static void put_fact(FILE *to, const char *name,
							   const char *format, ...)
{
	va_list ap;

	fprintf(to, "#   %-34s ", name);
	va_start(ap, format);
	vfprintf(to, format, ap);
	va_end(ap);
	fputc('\n', to);
}

static void put_size(FILE *to, const char *name, double bytes)
{
	char text[40];

	put_fact(to, name, "%s", text_bytes(text, sizeof text, bytes));
}

static void put_demand(const struct exchange_sizing *sizing, FILE *to)
{
	const struct exchange_demand *demand = &sizing->demand;
	char quota[40], message[40];

	fputs("# Exchange sizing (sanlab size)\n#\n", to);
	put_fact(to, "profile", "%s", sizing->profile);
	put_fact(to, "mailboxes", "%" PRIu64 " of %s", demand->mailboxes,
		 text_bytes(quota, sizeof quota, (double)demand->quota_bytes));
	put_fact(to, "messages a day", "%" PRIu64 " of %s", demand->messages,
		 text_bytes(message, sizeof message, (double)demand->message_bytes));
	put_fact(to, "servers, databases, copies", "%" PRIu64 ", %" PRIu64 ", %" PRIu64,
		 demand->servers, demand->databases, demand->copies);
	fputs("#\n", to);
}

static void put_figures(const struct exchange_sizing *sizing, FILE *to)
{
	put_fact(to, "IOPS per mailbox", "%.4g%s", sizing->iops_per_mailbox,
		 sizing->iops_assumed ? " (on the line between published figures)" : "");
	put_fact(to, "transactional IOPS",
		 "%.0f, with 20 %% headroom %.0f (%.0f reads, %.0f writes)", sizing->iops,
		 sizing->planned_iops, sizing->reads, sizing->writes);
	put_fact(to, "log writes/s", "%.0f", sizing->log_writes);
	put_fact(to, "maintenance reads/s", "%.0f (%.1f MiB/s)", sizing->bdm_reads,
		 sizing->bdm_bytes / (double)MIB);
	put_size(to, "a mailbox on disk", sizing->mailbox_bytes);
	put_fact(to, "mailboxes per database", "%.0f", sizing->mailboxes_per_database);
	put_size(to, "a database", sizing->database_bytes);
	put_size(to, "its content index", sizing->index_bytes);
	put_fact(to, "its log files a day", "%.0f of 1 MiB", sizing->log_files_per_day);
	put_size(to, "its logs, three days", sizing->log_bytes);
	put_size(to, "its volume", sizing->volume_bytes);
	put_size(to, "all volumes of active databases", sizing->total_bytes);
	if (sizing->demand.copies > 1)
		put_size(to, "with all copies",
			 sizing->total_bytes * (double)sizing->demand.copies);
	if (sizing->cache_bytes_per_server > 0)
		put_size(to, "database cache per server", sizing->cache_bytes_per_server);
	fputs(
	    "#\n# Overheads (white space, deleted items, index, log days, headroom) are those that "
	    "calculators are\n# known to take; no document behind them was at hand.\n#\n",
	    to);
}

static void put_arrays(const struct exchange_sizing *sizing, FILE *to)
{
	fprintf(to, "#   %-14s %-18s %-7s %9s %9s %9s %9s %7s %7s\n", "array", "drives", "RAID",
		"IOPS each", "drive I/Os", "for IOPS", "for space", "arrays", "drives");
	for (int i = 0; preset_names[i]; i++) {
		struct size_array array;
		char drives[48];

		size_array(sizing, i, &array);
		snprintf(drives, sizeof drives, "%ux%s", array.facts.drives, array.facts.drive);
		fprintf(to, "#   %-14s %-18s %-7s %9.0f %9.0f %9u %9u %7u %7u\n", array.facts.name,
			drives, array.facts.raid, array.drive_iops, array.backend_iops,
			array.for_iops, array.for_space, array.count, array.drives);
	}
	fputs("#\n# For the active databases.  A copy of them needs as much once more, "
	      "elsewhere.\n#\n",
	      to);
}

static uint64_t mib(double bytes)
{
	return (uint64_t)fmax(1, ceil(bytes / (double)MIB));
}

/* The share of one array: whole databases, spread over as many servers as have some. */
struct share {
	uint64_t databases, servers, per_server;
	double mailboxes;
};

static struct share share_of(const struct exchange_sizing *sizing, const struct size_array *array)
{
	const struct exchange_demand *demand = &sizing->demand;
	struct share share = {.databases = demand->databases / array->count};

	share.databases = MIN_OF(MAX_OF(share.databases, UINT64_C(1)), (uint64_t)VOLUMES_MAX);
	share.per_server = MIN_OF(demand->databases / demand->servers, share.databases);
	share.servers = MAX_OF(share.databases / share.per_server, UINT64_C(1));
	share.databases = share.servers * share.per_server;
	share.mailboxes = (double)share.databases * sizing->mailboxes_per_database;
	return share;
}

static void put_group(const struct size_array *array, FILE *to)
{
	fprintf(to,
		"name: exchange-size\ngroup:\n  style: %s\n  portal: 127.0.0.1:3260\n  pools:\n"
		"    - name: default\n      members:\n        - name: array\n          model: %s\n"
		"          portals: [",
		group_style_names[array->facts.style], array->facts.name);
	for (unsigned i = 0; i < MIN_OF(array->facts.ports, 4U); i++)
		fprintf(to, "%s127.0.0.1:%u", i ? ", " : "", 3261 + i);
	fputs("]\n          store: discard           # the databases would fill any memory\n"
	      "          timing: modelled\n",
	      to);
}

/* Thin only where a volume is larger than the whole array: what is not there takes no time to read.
 */
static void put_volumes(const struct exchange_sizing *sizing, const struct size_array *array,
			const struct share *share, FILE *to)
{
	bool thin = sizing->volume_bytes > array->usable_bytes * USED_SHARE;

	fputs("  volumes:\n", to);
	for (uint64_t i = 0; i < share->databases; i++)
		fprintf(to,
			"    - {name: db%" PRIu64 ", pool: default, size: %" PRIu64
			"MiB, thin: %s}\n",
			i + 1, mib(sizing->volume_bytes), thin ? "true" : "false");
	fputs("hosts:\n", to);
	for (uint64_t s = 0; s < share->servers; s++) {
		fprintf(to, "  - name: mbx%" PRIu64 "\n    volumes: [", s + 1);
		for (uint64_t i = 0; i < share->per_server; i++)
			fprintf(to, "%sdb%" PRIu64, i ? ", " : "", s * share->per_server + i + 1);
		fputs("]\n", to);
	}
}

static void put_load(const struct exchange_sizing *sizing, const struct share *share, FILE *to)
{
	fprintf(
	    to,
	    "workload:\n  type: exchange\n  engine: ese\n  profile: %s\n"
	    "  mailboxes: %.0f\n  iops-per-mailbox: %.6g     # with headroom\n"
	    "  copies: %" PRIu64 "\n"
	    "  loop: open                      # the planned I/O, whatever the array does; closed: "
	    "as Jetstress\n  initial-size: %" PRIu64 "MiB\n  database-size: %" PRIu64
	    "MiB\n  content: none\n",
	    sizing->profile, fmax(1, floor(share->mailboxes)),
	    sizing->planned_iops / (double)sizing->demand.mailboxes, sizing->demand.copies,
	    mib(sizing->database_bytes), mib(sizing->database_bytes * 1.05) + 64);
	fputs("run:\n  duration: 2h\nvirtual:\n  network: none\n", to);
}

int size_put_lab(const struct exchange_sizing *sizing, int model, FILE *to)
{
	struct size_array array;
	struct share share;

	size_array(sizing, model, &array);
	share = share_of(sizing, &array);
	put_demand(sizing, to);
	put_figures(sizing, to);
	put_arrays(sizing, to);
	fprintf(to,
		"# The lab: two hours of it, as a Jetstress-like performance test, on %s %s%s.\n"
		"#   sanlab run --virtual THIS.yaml --out DIR\n\n",
		array.count > 1 ? "one of the" : "one", array.facts.name,
		array.count > 1 ? ",\n# with its share of the databases" : "");
	put_group(&array, to);
	put_volumes(sizing, &array, &share, to);
	put_load(sizing, &share, to);
	return ferror(to) ? -EIO : 0;
}
