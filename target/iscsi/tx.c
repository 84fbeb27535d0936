/* SPDX-License-Identifier: MIT
 *
 * Queueing, cutting and accounting of output.
 */
#include "target/iscsi/tx.h"

#include <assert.h>
#include <stdlib.h>

#include "base/crc32c.h"

struct iscsi_tx_slab {
	struct iscsi_tx_slab *next;
	struct iscsi_tx_item item[TX_ITEMS_PER_SLAB];
};

void iscsi_tx_init(struct iscsi_tx *tx, const struct iscsi_params *params,
		   struct iscsi_portal_counters *counters)
{
	STAILQ_INIT(&tx->queue);
	STAILQ_INIT(&tx->spare);
	tx->slabs = NULL;
	tx->items = tx->first = tx->filled = 0;
	tx->first_sent = 0;
	tx->queued_bytes = 0;
	tx->stat_sn = 1;
	tx->window = NULL;
	tx->params = params;
	tx->header_digest = tx->data_digest = false;
	tx->counters = counters;
}

static void item_release(struct iscsi_tx *tx, struct iscsi_tx_item *item)
{
	assert(tx->items > 0);
	tx->items--;
	item->buf = buf_unref(item->buf);
	STAILQ_INSERT_HEAD(&tx->spare, item, link);
}

void iscsi_tx_clear(struct iscsi_tx *tx)
{
	struct iscsi_tx_item *item;

	while (tx->filled > 0) {
		struct iscsi_tx_slot *slot = &tx->slot[tx->first];

		if (slot->last_of)
			item_release(tx, slot->last_of);
		tx->first = (tx->first + 1) % TX_SLOTS;
		tx->filled--;
	}
	while ((item = STAILQ_FIRST(&tx->queue))) {
		STAILQ_REMOVE_HEAD(&tx->queue, link);
		item_release(tx, item);
	}
	tx->first_sent = 0;
	tx->queued_bytes = 0;
	assert(tx->items == 0);
}

void iscsi_tx_done(struct iscsi_tx *tx)
{
	iscsi_tx_clear(tx);
	while (tx->slabs) {
		struct iscsi_tx_slab *slab = tx->slabs;

		tx->slabs = slab->next;
		free(slab);
	}
	STAILQ_INIT(&tx->spare);
}

static bool slab_add(struct iscsi_tx *tx)
{
	struct iscsi_tx_slab *slab;

	if (tx->items >= TX_MAX_ITEMS)
		return false;
	slab = malloc(sizeof *slab);
	if (!slab)
		return false;
	slab->next = tx->slabs;
	tx->slabs = slab;
	for (unsigned i = 0; i < TX_ITEMS_PER_SLAB; i++)
		STAILQ_INSERT_TAIL(&tx->spare, &slab->item[i], link);
	return true;
}

struct iscsi_tx_item *iscsi_tx_new(struct iscsi_tx *tx)
{
	struct iscsi_tx_item *item;

	if (STAILQ_EMPTY(&tx->spare) && !slab_add(tx))
		return NULL;
	item = STAILQ_FIRST(&tx->spare);
	STAILQ_REMOVE_HEAD(&tx->spare, link);
	tx->items++;
	memset(item->bhs, 0, sizeof item->bhs);
	item->buf = NULL;
	item->data = NULL;
	item->lent = NULL;
	item->data_bytes = 0;
	item->data_in = item->with_status = false;
	item->tally = TALLY_NONE;
	item->tally_bytes = 0;
	item->cut_bytes = item->burst_bytes = item->data_sn = 0;
	return item;
}

void iscsi_tx_push(struct iscsi_tx *tx, struct iscsi_tx_item *item, bool advance)
{
	put_be32(item->bhs + BHS_STAT_SN, tx->stat_sn);
	if (advance)
		tx->stat_sn++;
	tx->queued_bytes += item->data_bytes;
	STAILQ_INSERT_TAIL(&tx->queue, item, link);
}

/* The next Data-In PDU of an item: no longer than the initiator takes, no burst longer than
 * MaxBurstLength. */
static uint32_t cut_length(const struct iscsi_params *params, uint32_t left, uint32_t burst_bytes)
{
	uint32_t length = MIN_OF(left, params->max_send_bytes);

	return MIN_OF(length, params->max_burst_bytes - burst_bytes);
}

uint32_t iscsi_tx_data_in_pdus(const struct iscsi_tx *tx, uint32_t data_bytes)
{
	const struct iscsi_params *params = tx->params;
	uint32_t burst_pdus =
	    (params->max_burst_bytes + params->max_send_bytes - 1) / params->max_send_bytes;
	uint32_t rest = data_bytes % params->max_burst_bytes;

	return data_bytes / params->max_burst_bytes * burst_pdus +
	       (rest + params->max_send_bytes - 1) / params->max_send_bytes;
}

/* Cuts the next PDU off a Data-In item into SLOT; true when it was the last. */
static bool data_in_cut(struct iscsi_tx *tx, struct iscsi_tx_item *item, struct iscsi_tx_slot *slot)
{
	uint32_t left = item->data_bytes - item->cut_bytes;
	uint32_t length = cut_length(tx->params, left, item->burst_bytes);
	bool last = length == left;

	memcpy(slot->head, item->bhs, BHS_BYTES);
	put_be32(slot->head + BHS_DATA_SN, item->data_sn++);
	put_be32(slot->head + BHS_OFFSET, item->cut_bytes);
	if (item->lent)
		slot->lent_skip = item->cut_bytes;
	else
		slot->data = item->data + item->cut_bytes;
	slot->data_bytes = length;
	item->cut_bytes += length;
	item->burst_bytes += length;
	if (last || item->burst_bytes == tx->params->max_burst_bytes) {
		slot->head[BHS_FLAGS] |= FLAG_FINAL;
		item->burst_bytes = 0;
	}
	if (!last || !item->with_status) {
		/* Status, residual and StatSN belong to the PDU with the S bit alone. */
		slot->head[BHS_FLAGS] &= FLAG_FINAL;
		slot->head[BHS_STATUS] = 0;
		put_be32(slot->head + BHS_STAT_SN, 0);
		put_be32(slot->head + BHS_RESIDUAL, 0);
	}
	return last;
}

/* The part [SKIP, SKIP + BYTES) of piece I of a lent data segment, which begins *AT bytes in; *AT
 * moves on to the next piece. */
static struct iovec lent_part(const struct iscsi_tx_slot *slot, unsigned i, uint64_t *at)
{
	const struct iovec *piece = &slot->lent->iov[i];
	uint64_t lo = MAX_OF(*at, slot->lent_skip);
	uint64_t hi = MIN_OF(*at + piece->iov_len, (uint64_t)slot->lent_skip + slot->data_bytes);
	struct iovec part = {0};

	if (lo < hi)
		part = (struct iovec){(uint8_t *)piece->iov_base + (lo - *at), hi - lo};
	*at += piece->iov_len;
	return part;
}

static uint32_t data_crc(const struct iscsi_tx_slot *slot)
{
	uint32_t crc = 0;
	uint64_t at = 0;

	if (!slot->lent)
		return crc32c(0, slot->data, slot->data_bytes);
	for (unsigned i = 0; i < slot->lent->count; i++) {
		struct iovec part = lent_part(slot, i, &at);

		crc = crc32c(crc, part.iov_base, part.iov_len);
	}
	return crc;
}

static void slot_finish(struct iscsi_tx *tx, struct iscsi_tx_slot *slot)
{
	uint32_t pad = pdu_pad_bytes(slot->data_bytes);

	put_be24(slot->head + BHS_DATA_BYTES, slot->data_bytes);
	if (tx->window) {
		put_be32(slot->head + BHS_EXP_CMD_SN, tx->window->exp_cmd_sn);
		put_be32(slot->head + BHS_MAX_CMD_SN, iscsi_window_max(tx->window));
	}
	slot->head_bytes = BHS_BYTES;
	slot->tail_bytes = (uint8_t)pad;
	if (pad > 0)
		memset(slot->tail, 0, pad);
	if (tx->header_digest) {
		put_digest(slot->head + BHS_BYTES, crc32c(0, slot->head, BHS_BYTES));
		slot->head_bytes += DIGEST_BYTES;
	}
	if (tx->data_digest && slot->data_bytes > 0) {
		uint32_t crc = data_crc(slot);

		put_digest(slot->tail + pad, crc32c(crc, slot->tail, pad));
		slot->tail_bytes += DIGEST_BYTES;
	}
	tx->counters->pdus_out++;
}

/* Moves the head of the queue into slots while there are any free. */
static void slots_fill(struct iscsi_tx *tx)
{
	struct iscsi_tx_item *item;

	while (tx->filled < TX_SLOTS && (item = STAILQ_FIRST(&tx->queue))) {
		struct iscsi_tx_slot *slot = &tx->slot[(tx->first + tx->filled) % TX_SLOTS];
		bool last = true;

		slot->lent = item->lent;
		if (item->data_in) {
			last = data_in_cut(tx, item, slot);
		} else {
			memcpy(slot->head, item->bhs, BHS_BYTES);
			slot->data = item->data;
			slot->data_bytes = item->data_bytes;
		}
		slot_finish(tx, slot);
		slot->last_of = NULL;
		if (last) {
			slot->last_of = item;
			STAILQ_REMOVE_HEAD(&tx->queue, link);
		}
		tx->filled++;
	}
}

void iscsi_tx_set_digests(struct iscsi_tx *tx, bool header, bool data)
{
	slots_fill(tx);
	assert(STAILQ_EMPTY(&tx->queue)); /* only login answers can be waiting */
	tx->header_digest = header;
	tx->data_digest = data;
}

/* A vector as far as it is filled. */
struct filling {
	struct iovec *iov;
	unsigned n, max;
	uint32_t skip; /* bytes that have been written already */
};

static void iov_put(struct filling *to, const void *base, size_t bytes)
{
	if (to->skip >= bytes) {
		to->skip -= (uint32_t)bytes;
	} else if (to->n < to->max) {
		to->iov[to->n++] = (struct iovec){(uint8_t *)base + to->skip, bytes - to->skip};
		to->skip = 0;
	}
}

static void lent_put(struct filling *to, const struct iscsi_tx_slot *slot)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < slot->lent->count; i++) {
		struct iovec part = lent_part(slot, i, &at);

		iov_put(to, part.iov_base, part.iov_len);
	}
}

unsigned iscsi_tx_iov(struct iscsi_tx *tx, struct iovec *iov, unsigned max)
{
	struct filling to = {.iov = iov, .max = max, .skip = tx->first_sent};

	slots_fill(tx);
	for (unsigned i = 0; i < tx->filled && to.n < max; i++) {
		const struct iscsi_tx_slot *slot = &tx->slot[(tx->first + i) % TX_SLOTS];

		iov_put(&to, slot->head, slot->head_bytes);
		if (slot->lent)
			lent_put(&to, slot);
		else
			iov_put(&to, slot->data, slot->data_bytes);
		iov_put(&to, slot->tail, slot->tail_bytes);
	}
	return to.n;
}

static void tally(struct iscsi_portal_counters *counters, const struct iscsi_tx_item *item)
{
	if (item->tally == TALLY_NONE)
		return;
	counters->commands++;
	if (item->tally == TALLY_READ) {
		counters->reads++;
		counters->read_bytes += item->tally_bytes;
	} else if (item->tally == TALLY_WRITE) {
		counters->writes++;
		counters->write_bytes += item->tally_bytes;
	}
}

void iscsi_tx_sent(struct iscsi_tx *tx, size_t bytes)
{
	bytes += tx->first_sent;
	while (tx->filled > 0) {
		struct iscsi_tx_slot *slot = &tx->slot[tx->first];
		size_t size = (size_t)slot->head_bytes + slot->data_bytes + slot->tail_bytes;

		if (bytes < size)
			break;
		bytes -= size;
		tx->queued_bytes -= slot->data_bytes;
		if (slot->last_of) {
			tally(tx->counters, slot->last_of);
			item_release(tx, slot->last_of);
		}
		tx->first = (tx->first + 1) % TX_SLOTS;
		tx->filled--;
	}
	assert(tx->filled > 0 || bytes == 0);
	tx->first_sent = (uint32_t)bytes;
}
