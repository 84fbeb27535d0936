/* SPDX-License-Identifier: MIT
 *
 * The keys below `constants`, and what they are when they are not given.
 */
#include "base/bytes.h"
#include "harness/workload/ese/ese_config.h"
#include "harness/workload/ese/ese_constants.h"

#define AT(member) offsetof(struct ese_constants_config, member)
/* What has no default here has the one of ese_constants_default. */
static const struct cfg_field constant_fields[] = {
    {.key = "record",
     .type = CFG_SIZE,
     .offset = AT(record_bytes),
     .min = 16,
     .max = 8192,
     .help = "a record in a page"},
    {.key = "fan-out",
     .type = CFG_UINT,
     .offset = AT(fanout),
     .min = 4,
     .max = 1334,
     .help = "entries of a node page of a new database"},
    {.key = "full-leaves",
     .type = CFG_REAL,
     .offset = AT(full_leaves),
     .max = 1,
     .help = "share of a new database's leaves that split at the next insert"},
    {.key = "extra-dirty",
     .type = CFG_REAL,
     .offset = AT(extra_dirty),
     .max = 1,
     .help = "probability that a read updates its leaf as well (version clean-up and the like)"},
    {.key = "read-run",
     .type = CFG_REAL,
     .offset = AT(read_run),
     .max = 0.99,
     .help = "probability that the read of a leaf takes one more page"},
    {.key = "write-run",
     .type = CFG_REAL,
     .offset = AT(write_run),
     .max = 0.99,
     .help = "probability that an update also dirties the page behind its leaf"},
    {.key = "log-insert",
     .type = CFG_SIZE,
     .offset = AT(log_insert_bytes),
     .min = 64,
     .max = 32768,
     .help = "log of an insert"},
    {.key = "log-delete",
     .type = CFG_SIZE,
     .offset = AT(log_delete_bytes),
     .min = 64,
     .max = 32768,
     .help = "log of a delete"},
    {.key = "log-replace",
     .type = CFG_SIZE,
     .offset = AT(log_replace_bytes),
     .min = 64,
     .max = 32768,
     .help = "log of a replace"},
    {.key = "coalesce",
     .type = CFG_SIZE,
     .offset = AT(coalesce_bytes),
     .min = 32 * 1024,
     .max = 256 * 1024,
     .help = "largest read and write of a database"},
    {.key = "write-gap",
     .type = CFG_SIZE,
     .offset = AT(write_gap_bytes),
     .max = 256 * 1024,
     .help = "clean pages in the cache that are written again to join two dirty ones"},
    {.key = "write-depth",
     .type = CFG_UINT,
     .offset = AT(write_depth),
     .min = 1,
     .max = 64,
     .help = "database writes in flight together, per database"},
    {.key = "flush-start",
     .type = CFG_PERCENT,
     .offset = AT(flush_start),
     .preset = "1%",
     .min = 0.1,
     .max = 25,
     .help = "free pages of the cache below which dirty pages are written to free more"},
    {.key = "flush-stop",
     .type = CFG_PERCENT,
     .offset = AT(flush_stop),
     .preset = "2%",
     .min = 0.1,
     .max = 50,
     .help = "free pages of the cache at which that ends"},
    {.key = "correlated",
     .type = CFG_DURATION,
     .offset = AT(correlated_ns),
     .preset = "128ms",
     .help = "touches of a page within this time count as one"},
    {.key = "history",
     .type = CFG_DURATION,
     .offset = AT(history_ns),
     .preset = "100s",
     .help = "how long the touches of a page that left the cache are remembered"},
};
#undef AT
const struct cfg_schema ese_constants_schema = {
    .name = "workload.constants",
    .size = sizeof(struct ese_constants_config),
    .fields = constant_fields,
    .field_count = ARRAY_SIZE(constant_fields),
};

void ese_supply_constants(const struct cfg *cfg, struct ese_constants_config *constants)
{
	const struct ese_constants *preset = &ese_constants_default;

#define SUPPLY(member)                                      \
	do {                                                \
		if (!cfg_given(cfg, &constants->member))    \
			constants->member = preset->member; \
	} while (0)
	SUPPLY(record_bytes);
	SUPPLY(fanout);
	SUPPLY(full_leaves);
	SUPPLY(extra_dirty);
	SUPPLY(read_run);
	SUPPLY(write_run);
	SUPPLY(log_insert_bytes);
	SUPPLY(log_delete_bytes);
	SUPPLY(log_replace_bytes);
	SUPPLY(coalesce_bytes);
	SUPPLY(write_gap_bytes);
	SUPPLY(write_depth);
#undef SUPPLY
}

void ese_config_constants(const struct ese_config *config, struct ese_constants *ret_constants)
{
	const struct ese_constants_config *from = &config->constants;

	*ret_constants = ese_constants_default;
	ret_constants->record_bytes = (uint32_t)from->record_bytes;
	ret_constants->fanout = (uint32_t)from->fanout;
	ret_constants->full_leaves = from->full_leaves;
	ret_constants->extra_dirty = from->extra_dirty;
	ret_constants->read_run = from->read_run;
	ret_constants->write_run = from->write_run;
	ret_constants->log_insert_bytes = (uint32_t)from->log_insert_bytes;
	ret_constants->log_delete_bytes = (uint32_t)from->log_delete_bytes;
	ret_constants->log_replace_bytes = (uint32_t)from->log_replace_bytes;
	ret_constants->coalesce_bytes = (uint32_t)from->coalesce_bytes;
	ret_constants->write_gap_bytes = (uint32_t)from->write_gap_bytes;
	ret_constants->write_depth = (uint32_t)from->write_depth;
}
