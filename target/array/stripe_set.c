/* SPDX-License-Identifier: MIT
 *
 * A redundant set: opening it, slots and drives, requests cut into pieces, direct reads.
 */
#include "target/array/stripe_set.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/bytes.h"

enum {
	OPS_MAX = 65536,
	WORKS_MIN = 4,
	WORKS_MAX = 64,
	WORKS_BYTES = 64 << 20, /* of row space, unless WORKS_MIN need more */
};

unsigned stripe_sets(unsigned count, unsigned set_min)
{
	for (unsigned sets = 2; sets * set_min <= count; sets++)
		if (count % sets == 0)
			return sets;
	return 0;
}

static struct stripe_set *set_of(const struct io_layer *layer)
{
	return container_of(layer, struct stripe_set, set.layer);
}

/* ---- slots and drives ---- */

/* Follows a column from its slot's own drive to the spare slots of its row.  Two spare slots may
 * stand in for one another's drive, never in a circle: a drive that has a spare slot of the row has
 * no column there. */
struct stripe_target stripe_find(const struct stripe_set *stripes, const struct stripe_at *at,
				 unsigned column)
{
	const struct raid_set *set = &stripes->set;
	struct stripe_place place = stripe_place(&stripes->geometry, at, column);
	struct stripe_target target = {.offset_bytes = place.offset_bytes};
	unsigned drive = place.drive;
	bool good = true;

	while (stripes->spared_mask >> drive & 1) {
		if (set->filling_mask >> drive & 1)
			target.twin[target.twin_count++] = drive;
		good &= stripes->spare_good_mask >> drive & 1;
		drive = stripe_spare_drive(&stripes->geometry, at, stripes->spare_of[drive] - 1);
	}
	target.drive = drive;
	target.collecting = !good;
	target.readable = good && raid_usable(set, drive);
	target.takes = raid_takes(set, drive);
	return target;
}

/* Is the slot's content there? */
static bool slot_is_good(const struct stripe_set *stripes, unsigned slot)
{
	if (stripes->spared_mask >> slot & 1)
		return stripes->spare_good_mask >> slot & 1;
	return raid_usable(&stripes->set, slot);
}

bool stripe_covers(const struct stripe_set *stripes, uint64_t slots)
{
	const struct stripe_geometry *geometry = &stripes->geometry;
	unsigned width = geometry->kind == STRIPE_PERMUTED ? geometry->drives : geometry->width;

	for (unsigned base = 0; base < geometry->drives; base += width) {
		uint64_t group = stripe_mask(width) << base;
		unsigned bad = 0;
		if (!(slots & group))
			continue;
		for (unsigned i = base; i < base + width; i++)
			bad += !slot_is_good(stripes, i) || slots >> i & 1;
		if (bad > geometry->parities)
			return false;
	}
	return true;
}

/* A slot that has no drive of its own is not concerned by what happens to that. */
static bool stripe_set_covers(const struct raid_set *set, uint64_t drives)
{
	const struct stripe_set *stripes = container_of(set, struct stripe_set, set);
	return stripe_covers(stripes, drives & ~stripes->spared_mask);
}

/* The spare slot that nobody has, plus one; 0: none. */
static uint8_t free_spare(const struct stripe_set *stripes)
{
	unsigned taken = 0;
	for (uint64_t left = stripes->spared_mask; left; left &= left - 1)
		taken |= 1u << stripes->spare_of[__builtin_ctzll(left)];
	for (unsigned spare = 1; spare <= RAID_DISTRIBUTED_SPARES; spare++)
		if (!(taken >> spare & 1))
			return (uint8_t)spare;
	return 0;
}

static void spare_take(struct stripe_set *stripes, unsigned slot, uint8_t spare)
{
	stripes->spare_of[slot] = spare;
	stripes->spared_mask |= STRIPE_BIT(slot);
	if (stripes->journal.nvram)
		stripes->journal.spare_of[slot] = spare;
}

static void spare_give(struct stripe_set *stripes, unsigned slot)
{
	stripes->spared_mask &= ~STRIPE_BIT(slot);
	stripes->spare_good_mask &= ~STRIPE_BIT(slot);
	if (stripes->journal.nvram)
		stripes->journal.spare_of[slot] = 0;
}

void stripe_slot_replace(struct io_layer *layer, unsigned slot, struct drive *drive)
{
	struct stripe_set *stripes = set_of(layer);
	struct raid_set *set = &stripes->set;
	uint64_t bit = STRIPE_BIT(slot);

	stripes->epoch++;
	set->stale_mask |= bit;
	if (drive) {
		set->drives[slot] = drive;
		set->filling_mask |= bit;
		/* What was being collected on spare slots is given up for it. */
		if (!(stripes->spare_good_mask & bit))
			spare_give(stripes, slot);
		return;
	}
	set->filling_mask &= ~bit;
	if (stripes->spared_mask & bit)
		return;
	uint8_t spare = free_spare(stripes);
	assert(stripes->geometry.kind == STRIPE_PERMUTED && spare);
	spare_take(stripes, slot, spare);
}

void stripe_slot_good(struct io_layer *layer, unsigned slot)
{
	struct stripe_set *stripes = set_of(layer);
	struct raid_set *set = &stripes->set;
	uint64_t bit = STRIPE_BIT(slot);

	stripes->epoch++;
	if (set->filling_mask & bit) {
		set->filling_mask &= ~bit;
		set->stale_mask &= ~bit;
		spare_give(stripes, slot);
	} else if (stripes->spared_mask & bit) {
		stripes->spare_good_mask |= bit;
	}
}

/* ---- direct reads ---- */

/* The column could not be read: PART becomes an operation on the stripe. */
static void read_through_redundancy(struct stripe_set *stripes, struct part *part, uint64_t stripe,
				    unsigned column, bool tried)
{
	struct raid_set *set = &stripes->set;
	uint64_t chunk = stripes->geometry.chunk_bytes, size = part->io.length_bytes;
	uint64_t within = (part->parent->offset_bytes + part->skip_bytes) % chunk;
	struct stripe_op *op = freelist_take(&stripes->ops);
	if (!op) {
		part_end(&set->parts, part, -EBUSY);
		return;
	}
	bool mirror = stripes->geometry.copies;
	*op = (struct stripe_op){
	    .parent = part->parent,
	    .fan = part->fan,
	    .kind = STRIPE_READ,
	    .skip_bytes = part->skip_bytes,
	    .column = mirror ? 0 : column,
	    .lo = (mirror ? 0 : column) * chunk + within,
	};
	op->hi = op->lo + size;
	if (tried) {
		op->avoid = STRIPE_BIT(column);
		if (part->io.status != -ENODEV)
			op->cure = op->avoid;
	}
	free(part->heap);
	freelist_give(&set->parts.parts, part);
	stripe_op_submit(stripes, op, stripe, (struct stripe_span){within, within + size});
}

static void read_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct stripe_set *stripes = io->owner;

	if (io->status == 0 || io->status == -EBUSY) {
		part_end(&stripes->set.parts, part, io->status);
		return;
	}
	uint64_t offset = part->parent->offset_bytes + part->skip_bytes;
	read_through_redundancy(stripes, part, offset / stripe_data_bytes(&stripes->geometry),
				part->first, true);
}

/* The copy of a mirror to be read: the one with the shortest queue; between equals another one in
 * each row, so that all work on a long read and a place is always read from the same drive. */
static unsigned choose_copy(const struct stripe_set *stripes, const struct stripe_at *at)
{
	const struct raid_set *set = &stripes->set;
	unsigned width = stripes->geometry.width, best = 0, best_queue = UINT_MAX;
	bool dirty = stripe_is_dirty(&stripes->marks, at->stripe);
	uint64_t lost = stripe_lost(&stripes->marks, at->stripe);
	uint64_t row = at->stripe / stripes->geometry.sets;

	for (unsigned i = 0; i < width; i++) {
		/* Copies of a dirty chunk differ: it is always the first one that counts. */
		unsigned copy = dirty ? i : (unsigned)((row + i) % width);
		unsigned drive = at->base + copy;
		if (!raid_usable(set, drive) || lost >> copy & 1)
			continue;
		if (set->drives[drive]->in_flight < best_queue) {
			best = copy;
			best_queue = set->drives[drive]->in_flight;
		}
		if (dirty || best_queue == 0)
			break;
	}
	return best;
}

static void stripe_set_read(struct stripe_set *stripes, struct io *io)
{
	const struct stripe_geometry *geometry = &stripes->geometry;
	struct raid_set *set = &stripes->set;
	uint64_t chunk = geometry->chunk_bytes, offset = io->offset_bytes,
		 length = io->length_bytes;
	uint64_t stripe_bytes = stripe_data_bytes(geometry), done = 0;
	uint64_t count = (offset + length - 1) / chunk - offset / chunk + 1;
	struct part *part, *next;

	int rc = part_take(&set->parts, io, (unsigned)count, &part);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (; part; part = next) {
		uint64_t stripe = (offset + done) / stripe_bytes;
		uint64_t within = offset + done - stripe * stripe_bytes;
		unsigned column = (unsigned)(within / chunk);
		uint64_t size = MIN_OF(chunk - (within - column * chunk), length - done);
		struct stripe_at at = stripe_at(geometry, stripe);

		within -= column * chunk;
		if (geometry->copies)
			column = choose_copy(stripes, &at);
		struct stripe_target target = stripe_find(stripes, &at, column);
		next = (struct part *)part->io.link;
		part->io.done = read_done;
		part->io.owner = stripes;
		part->first = column;
		rc = part_fill(part, done, target.offset_bytes + within, size);
		done += size;
		if (rc)
			part_end(&set->parts, part, rc);
		else if (!target.readable || stripes->replays > 0 ||
			 stripe_lost(&stripes->marks, stripe) >> column & 1 ||
			 (stripes->journal.kept &&
			  stripe_is_kept(stripes, stripe,
					 (struct stripe_span){within, within + size})))
			read_through_redundancy(stripes, part, stripe, column, false);
		else
			io_submit(&set->drives[target.drive]->layer, &part->io);
	}
}

/* Memory of the drives themselves, where nothing has to be worked out. */
static int stripe_set_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
			   struct io_lent *lent)
{
	struct stripe_set *stripes = set_of(layer);
	const struct stripe_geometry *geometry = &stripes->geometry;
	uint64_t chunk = geometry->chunk_bytes, stripe_bytes = stripe_data_bytes(geometry);
	int rc = 0;

	if (stripes->marks.count || stripes->replays || stripes->journal.kept)
		return -EAGAIN;
	for (uint64_t done = 0, size; rc == 0 && done < length; done += size) {
		struct stripe_at at = stripe_at(geometry, (offset + done) / stripe_bytes);
		uint64_t within = offset + done - at.stripe * stripe_bytes;
		unsigned column = (unsigned)(within / chunk);

		within -= column * chunk;
		size = MIN_OF(chunk - within, length - done);
		struct stripe_target target = stripe_find(
		    stripes, &at, geometry->copies ? choose_copy(stripes, &at) : column);
		rc = target.readable ? io_lend(&stripes->set.drives[target.drive]->layer,
					       target.offset_bytes + within, size, lent)
				     : -EAGAIN;
	}
	return rc;
}

/* ---- updates ---- */

/* Bytes of the piece that begins at OFFSET: to the end of the stripe, but a write that ends one
 * chunk and begins the next without common columns is cut there: its hull would be the whole
 * chunk, most of it read for nothing. */
static uint64_t piece_bytes(const struct stripe_geometry *geometry, uint64_t offset, uint64_t left)
{
	uint64_t stripe_bytes = stripe_data_bytes(geometry);
	uint64_t within = offset % stripe_bytes;
	uint64_t size = MIN_OF(left, stripe_bytes - within);
	uint64_t column = within % geometry->chunk_bytes;
	uint64_t first = geometry->chunk_bytes - column;

	if (size > first && size - first <= column)
		return first;
	return size;
}

static unsigned pieces_of(const struct stripe_geometry *geometry, const struct io *io)
{
	unsigned count = 0;
	for (uint64_t done = 0; done < io->length_bytes; count++)
		done += piece_bytes(geometry, io->offset_bytes + done, io->length_bytes - done);
	return count;
}

static int ops_take(struct stripe_set *stripes, struct io *io, unsigned count,
		    struct stripe_op **ret_ops)
{
	struct stripe_op *first = NULL;
	struct fan *fan = NULL;

	if (!freelist_reserve(&stripes->ops, count))
		return -EBUSY;
	if (count > 1) {
		fan = fan_take(&stripes->set.parts, io, count);
		if (!fan)
			return -EBUSY;
	}
	for (unsigned i = 0; i < count; i++) {
		struct stripe_op *op = freelist_take(&stripes->ops);
		*op = (struct stripe_op){.parent = io, .fan = fan, .next = first};
		first = op;
	}
	*ret_ops = first;
	return 0;
}

static void stripe_set_update(struct stripe_set *stripes, struct io *io)
{
	const struct stripe_geometry *geometry = &stripes->geometry;
	uint64_t offset = io->offset_bytes, length = io->length_bytes, done = 0;
	uint64_t stripe_bytes = stripe_data_bytes(geometry), chunk = geometry->chunk_bytes;
	struct stripe_op *op, *next;

	int rc = ops_take(stripes, io, pieces_of(geometry, io), &op);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (; op; op = next) {
		uint64_t size = piece_bytes(geometry, offset + done, length - done);
		uint64_t stripe = (offset + done) / stripe_bytes;
		bool whole = size == stripe_bytes || geometry->copies;

		next = op->next;
		op->kind = io->op == IO_UNMAP && whole ? STRIPE_UNMAP : STRIPE_WRITE;
		op->skip_bytes = done;
		op->lo = offset + done - stripe * stripe_bytes;
		op->hi = op->lo + size;
		done += size;
		struct stripe_span lock = stripe_hull(chunk, op->lo, op->hi);
		/* A dirty stripe is coded anew altogether, which cleans it. */
		if (stripe_is_dirty(&stripes->marks, stripe) && !geometry->copies)
			lock = (struct stripe_span){0, chunk};
		stripe_op_submit(stripes, op, stripe, lock);
	}
}

/* ---- background work ---- */

uint64_t stripe_unit_count(const struct io_layer *layer)
{
	const struct stripe_geometry *geometry = &set_of(layer)->geometry;
	return geometry->stripe_count / geometry->sets;
}

uint64_t stripe_dirty_unit(const struct io_layer *layer, uint64_t from)
{
	const struct stripe_set *stripes = set_of(layer);
	unsigned sets = stripes->geometry.sets;
	uint64_t stripe = MIN_OF(stripe_marks_next(&stripes->marks, from * sets),
				 stripe_kept_next(stripes, from * sets));
	return stripe == UINT64_MAX ? stripe : stripe / sets;
}

void stripe_unit_run(struct io_layer *layer, struct raid_unit *unit)
{
	struct stripe_set *stripes = set_of(layer);
	const struct stripe_geometry *geometry = &stripes->geometry;
	uint64_t stripe = unit->unit * geometry->sets;

	assert(unit->unit < stripe_unit_count(layer));
	unit->status = 0;
	unit->moved_bytes = 0;
	unit->repaired = 0;
	unit->inconsistent = false;
	struct stripe_op *op = freelist_take(&stripes->ops);
	if (!op) {
		unit->status = -EBUSY;
		unit->done(unit);
		return;
	}
	*op = (struct stripe_op){.unit = unit, .hi = stripe_data_bytes(geometry)};
	op->kind = unit->kind == RAID_UNIT_REBUILD ? STRIPE_REBUILD : STRIPE_VERIFY;
	if (op->kind == STRIPE_REBUILD && geometry->kind != STRIPE_PERMUTED)
		stripe += unit->slot / geometry->width;
	stripe_op_submit(stripes, op, stripe, (struct stripe_span){0, geometry->chunk_bytes});
}

/* ---- the layer ---- */

static void stripe_set_submit(struct io_layer *layer, struct io *io)
{
	struct stripe_set *stripes = set_of(layer);

	if (!io_in_range(layer, io))
		io_complete(io, -ERANGE);
	else if (io->op == IO_FLUSH)
		raid_flush(&stripes->set, io);
	else if (io->length_bytes == 0)
		io_complete(io, 0);
	else if (io->op == IO_READ)
		stripe_set_read(stripes, io);
	else
		stripe_set_update(stripes, io);
}

static void stripe_set_free(struct io_layer *layer)
{
	struct stripe_set *stripes = set_of(layer);
	stripe_works_free(stripes);
	stripe_marks_close(&stripes->marks);
	freelist_done(&stripes->ops);
	raid_set_done(&stripes->set);
	free(stripes->zeros);
	free(stripes);
}

static const struct io_layer_ops stripe_layer_ops = {
    .name = "raid",
    .submit = stripe_set_submit,
    .lend = stripe_set_lend,
    .free = stripe_set_free,
};

/* What is on spare space is where the journal says. */
static void open_spares(struct stripe_set *stripes, const struct raid_config *config)
{
	const uint8_t *known = stripes->journal.nvram ? stripes->journal.spare_of : NULL;
	unsigned taken = 0;

	for (unsigned slot = 0; slot < stripes->geometry.drives; slot++) {
		uint8_t spare = known ? known[slot] : 0;
		bool good = !(config->stale_mask >> slot & 1);
		if (!(config->spared_mask >> slot & 1))
			continue;
		if (stripes->geometry.kind != STRIPE_PERMUTED || spare == 0 ||
		    spare > RAID_DISTRIBUTED_SPARES || taken >> spare & 1) {
			raid_mark_stale(&stripes->set, slot);
			continue;
		}
		taken |= 1u << spare;
		spare_take(stripes, slot, spare);
		stripes->spare_good_mask |= good ? STRIPE_BIT(slot) : 0;
		stripes->set.stale_mask |= STRIPE_BIT(slot);
	}
}

static int open_parts(struct stripe_set *stripes, const struct raid_config *config)
{
	const struct stripe_geometry *geometry = &stripes->geometry;
	uint64_t work_bytes;

	stripe_locks_init(&stripes->locks);
	freelist_init(&stripes->ops, sizeof(struct stripe_op), OPS_MAX);
	STAILQ_INIT(&stripes->starved);
	STAILQ_INIT(&stripes->unjournaled);
	stripes->row_bytes = round_up_u64(geometry->chunk_bytes, 4096);
	stripes->legs = geometry->width;
	if (geometry->kind == STRIPE_PERMUTED)
		stripes->legs += JOURNAL_TWINS * geometry->width;
	work_bytes = (geometry->width + 1) * stripes->row_bytes;
	stripes->works_limit =
	    (unsigned)MIN_OF(WORKS_MAX, MAX_OF(WORKS_MIN, WORKS_BYTES / work_bytes));
	stripes->zeros = aligned_alloc(4096, stripes->row_bytes);
	if (!stripes->zeros)
		return -ENOMEM;
	memset(stripes->zeros, 0, stripes->row_bytes);
	void *marks = stripe_journal_open(&stripes->journal, geometry, config->journal);
	return stripe_marks_open(&stripes->marks, marks, geometry->stripe_count);
}

int stripe_set_open(const struct raid_ops *level, const struct stripe_geometry *geometry,
		    const struct raid_config *config, struct io_layer **ret_layer, struct err *err)
{
	struct stripe_set *stripes = calloc(1, sizeof *stripes);
	if (!stripes)
		return err_set(err, -ENOMEM, "no memory for a RAID set");
	int rc = raid_set_init(&stripes->set, level, &stripe_layer_ops, config, err);
	if (rc) {
		free(stripes);
		return rc;
	}
	stripes->set.covers = stripe_set_covers;
	stripes->geometry = *geometry;
	if (geometry->kind == STRIPE_PERMUTED) {
		stripes->map = *geometry->map;
		stripes->geometry.map = &stripes->map;
	}
	stripes->shape = (struct stripe_shape){
	    .data = geometry->data,
	    .parities = geometry->parities,
	    .copies = geometry->copies,
	    .chunk_bytes = geometry->chunk_bytes,
	};
	rc = open_parts(stripes, config);
	if (rc) {
		stripe_set_free(&stripes->set.layer);
		return err_set(err, rc, "no memory for a RAID set");
	}
	open_spares(stripes, config);
	stripe_replay_begin(stripes);
	*ret_layer = &stripes->set.layer;
	return 0;
}
