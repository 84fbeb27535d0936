/* SPDX-License-Identifier: MIT
 *
 * Operations on the B+ tree.
 *
 * Each step goes from the root down as far as pages are there, and starts again from the root when
 * the one it waited for has come: whatever others have done meanwhile is seen.  The path is pinned
 * while it waits, so that it is still there afterwards.  What an operation changes it changes
 * within one step.
 *
 * Splits come one at a time: the highest page of the path that must give way, then the operation
 * steps again.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

static void step(struct ese_page_waiter *waiter, int status);

static void room_again(struct ese_log_waiter *waiter, int status)
{
	struct ese_op *op = container_of(waiter, struct ese_op, log_waiter);

	step(&op->page_waiter, status);
}

static void durable(struct ese_log_waiter *waiter, int status)
{
	db_end_op(container_of(waiter, struct ese_op, log_waiter), status);
}

/* A change was refused: the operation waits for room in the log, or ends. */
static void refused(struct ese_op *op, int status)
{
	struct ese_db *db = op->db;

	if (status != -EAGAIN) {
		db_end_op(op, status);
		return;
	}
	db_unpin(op);
	db->counters.log_waits++;
	op->log_waiter.done = room_again;
	ese_log_wait_room(db->log, &op->log_waiter);
	keeper_urge(db);
}

static void commit(struct ese_op *op, uint64_t end)
{
	struct ese_db *db = op->db;

	db_unpin(op);
	if (op->lazy) {
		ese_log_commit(db->log, end, NULL);
		db_end_op(op, 0);
		return;
	}
	db->counters.durable++;
	op->log_waiter.done = durable;
	ese_log_commit(db->log, end, &op->log_waiter);
}

/* ---- splits ---- */

static void stall(struct ese_op *op)
{
	if (!db_stall(op->db, &op->page_waiter))
		db_unpin(op);
}

/* The root stays where it is: what it holds moves to a new page below. */
static void describe_growth(const struct ese_image *root, uint32_t target, struct ese_slot *child,
			    struct ese_record *ret_record)
{
	*child = (struct ese_slot){.child = target};
	*ret_record = (struct ese_record){
	    .kind = ESE_RECORD_SPLIT,
	    .update_count = 2,
	    .updates = {{.kind = ESE_UPDATE_IMAGE,
			 .level = root->level,
			 .base_first = root->base_first,
			 .base_count = root->base_count,
			 .slot_count = root->count,
			 .slots = root->slots},
			{.kind = ESE_UPDATE_IMAGE,
			 .level = (uint8_t)(root->level + 1),
			 .slot_count = 1,
			 .slots = child}},
	};
}

static void describe_split(struct ese_db *db, const struct ese_image *left, uint32_t target,
			   struct ese_record *ret_record)
{
	struct ese_update parts[2];

	ese_image_split(&db->rules, left, target, parts);
	*ret_record = (struct ese_record){
	    .kind = ESE_RECORD_SPLIT,
	    .update_count = 3,
	    .updates = {parts[1],
			parts[0],
			{.kind = ESE_UPDATE_ENTRY, .key = parts[0].key, .target = target}},
	};
}

/* Splits PATH[AT], or lets the root grow; then the operation steps again. */
static void split(struct ese_op *op, unsigned at)
{
	struct ese_db *db = op->db;
	struct ese_frame *full = op->path[at];
	struct ese_frame *frames[3] = {NULL, full, at ? op->path[at - 1] : NULL};
	struct ese_record record;
	struct ese_slot child;
	uint64_t end;
	int r;

	if (db->used_pages >= db->layout.pages || full->image.level + 1u >= ESE_LEVELS_MAX) {
		db_end_op(op, -ENOSPC);
		return;
	}
	frames[0] = db_take_frame(db, db->used_pages, &op->page_waiter);
	if (!frames[0]) {
		stall(op);
		return;
	}
	if (at)
		describe_split(db, &full->image, frames[0]->page, &record);
	else
		describe_growth(&full->image, frames[0]->page, &child, &record);
	r = db_change(db, &record, frames, &end);
	if (r < 0) {
		ese_cache_give_up(db->cache, frames[0]);
		refused(op, r);
		return;
	}
	db->used_pages++;
	db->counters.splits += full->image.level == 0;
	db->counters.node_splits += full->image.level > 0;
	step(&op->page_waiter, 0);
}

static void make_room(struct ese_op *op)
{
	unsigned at = op->depth - 1u;

	while (at &&
	       ese_node_children(&op->path[at - 1]->image) >= op->db->rules.config.children_max)
		at--;
	split(op, at);
}

/* ---- operations on the leaf ---- */

/* The page beside LEAF, if an update of one is to dirty it too: cached, or as it was born. */
static struct ese_frame *neighbour(struct ese_db *db, const struct ese_frame *leaf)
{
	uint32_t page = leaf->page + 1;
	struct ese_frame *frame;

	if (page >= ESE_PAGE_FIRST + db->rules.count[0])
		return NULL;
	frame = ese_cache_find(db->cache, db->number, page);
	if (frame)
		return frame->present && frame->image.level == 0 ? frame : NULL;
	if (!ese_flush_map_as_born(ese_pager_map(db->pager), page))
		return NULL;
	frame = db_take_frame(db, page, NULL);
	if (!frame)
		return NULL;
	frame->preread = true;
	if (ese_image_initial(&db->rules, page, &frame->image) < 0) {
		ese_cache_give_up(db->cache, frame);
		return NULL;
	}
	db_arrived(db, frame);
	return frame;
}

static void update_leaf(struct ese_op *op, enum ese_record_kind kind, uint32_t log_bytes,
			const struct ese_update *update)
{
	struct ese_db *db = op->db;
	struct ese_frame *leaf = op->path[op->depth - 1], *beside = NULL;
	struct ese_frame *frames[2] = {leaf, NULL};
	struct ese_record record = {
	    .kind = kind, .update_count = 1, .updates = {*update}, .padded_bytes = log_bytes};
	uint64_t end;
	int r;

	if (op->chance < db->config.constants.write_run)
		beside = neighbour(db, leaf);
	if (beside) {
		frames[record.update_count] = beside;
		record.updates[record.update_count++].kind = ESE_UPDATE_TOUCH;
	}
	r = db_change(db, &record, frames, &end);
	if (r < 0) {
		refused(op, r);
		return;
	}
	op->dbtime = record.updates[0].dbtime_after;
	commit(op, end);
}

/* The record that the operation is about; -1: there is none, and it has ended. */
static int find(struct ese_op *op)
{
	const struct ese_image *leaf = &op->path[op->depth - 1]->image;
	unsigned at = ese_image_find(leaf, op->key);

	if (op->pick && at == leaf->count && at)
		at--;
	if (at == leaf->count || (!op->pick && leaf->slots[at].key != op->key)) {
		db_end_op(op, -ENOENT);
		return -1;
	}
	op->item = leaf->slots[at];
	return (int)at;
}

static void op_insert(struct ese_op *op)
{
	const struct ese_image *leaf = &op->path[op->depth - 1]->image;
	const struct ese_constants *constants = &op->db->config.constants;
	unsigned at = ese_image_find(leaf, op->key);
	struct ese_update put = {
	    .kind = ESE_UPDATE_PUT, .key = op->key, .bytes = constants->record_bytes};

	if (at < leaf->count && leaf->slots[at].key == op->key) {
		op->item = leaf->slots[at];
		db_end_op(op, -EEXIST);
		return;
	}
	if (!ese_leaf_fits(leaf, put.bytes)) {
		make_room(op);
		return;
	}
	op->item = (struct ese_slot){.key = op->key, .bytes = put.bytes};
	update_leaf(op, ESE_RECORD_INSERT, constants->log_insert_bytes, &put);
}

static void op_delete(struct ese_op *op)
{
	struct ese_update out = {.kind = ESE_UPDATE_DELETE};

	if (find(op) < 0)
		return;
	out.key = op->item.key;
	update_leaf(op, ESE_RECORD_DELETE, op->db->config.constants.log_delete_bytes, &out);
}

static void op_replace(struct ese_op *op)
{
	struct ese_update put = {.kind = ESE_UPDATE_PUT};

	if (find(op) < 0)
		return;
	op->item.version++;
	put.key = op->item.key;
	put.version = op->item.version;
	put.bytes = op->item.bytes;
	update_leaf(op, ESE_RECORD_REPLACE, op->db->config.constants.log_replace_bytes, &put);
}

/* Version clean-up: sometimes who reads a leaf finds something to tidy. */
static void tidy(struct ese_op *op)
{
	struct ese_db *db = op->db;
	struct ese_record record = {
	    .kind = ESE_RECORD_TOUCH, .update_count = 1, .updates = {{.kind = ESE_UPDATE_TOUCH}}};
	uint64_t end;

	if (db_change(db, &record, &op->path[op->depth - 1], &end) < 0)
		return; /* it can wait */
	db->counters.touches++;
	ese_log_commit(db->log, end, NULL);
}

static void op_read(struct ese_op *op)
{
	if (op->chance < op->db->config.constants.extra_dirty)
		tidy(op);
	if (find(op) >= 0)
		db_end_op(op, 0);
}

static void (*const leaf_ops[ESE_OP_KINDS])(struct ese_op *op) = {
    [ESE_OP_INSERT] = op_insert,
    [ESE_OP_DELETE] = op_delete,
    [ESE_OP_REPLACE] = op_replace,
    [ESE_OP_READ] = op_read,
};

/* ---- down the tree ---- */

/* The next page of the path; false: the operation waits for it. */
static bool descend(struct ese_op *op, uint32_t page)
{
	struct ese_db *db = op->db;
	struct ese_frame *frame = ese_cache_find(db->cache, db->number, page);
	bool hold;

	if (!frame || !frame->present) {
		op->page_reads++;
		frame = db_fetch(db, page, &op->page_waiter, &hold);
		if (!frame && !hold)
			db_unpin(op);
		if (!frame) /* it may have been stepped, even ended, within the call */
			return false;
	}
	if (op->depth >= op->touched) {
		ese_cache_touch(db->cache, frame, loop_now_ns(db->env.loop));
		op->touched = (uint8_t)(op->depth + 1);
	}
	frame->pins++;
	op->path[op->depth++] = frame;
	return true;
}

static void step(struct ese_page_waiter *waiter, int status)
{
	struct ese_op *op = container_of(waiter, struct ese_op, page_waiter);
	struct ese_db *db = op->db;
	uint32_t page = db->rules.root;

	db_unpin(op);
	if (status == 0 && db->state != DB_OPEN && db->state != DB_CLOSING)
		status = -ECANCELED;
	if (status < 0) {
		db_end_op(op, status);
		return;
	}
	for (;;) {
		const struct ese_image *image;

		if (!descend(op, page))
			return;
		image = &op->path[op->depth - 1]->image;
		if (image->level == 0)
			break;
		page = ese_node_child(&db->rules, image, op->key);
	}
	leaf_ops[op->kind](op);
}

void db_op_begin(struct ese_op *op)
{
	op->page_waiter.step = step;
	step(&op->page_waiter, 0);
}
