/* SPDX-License-Identifier: MIT
 *
 * The output of one connection: a queue of PDUs, turned into iovecs for one vectored write.
 *
 * A queued item is one PDU, or the whole Data-In of a command, which is cut into PDUs only when
 * the vector is filled: a long read through a small MaxRecvDataSegmentLength costs no memory.
 * Headers and digests live in a fixed arena of slots; payload is pointed to and its buffer
 * released when the last byte has gone out.
 *
 * StatSN is given when an item is queued (items leave in that order); ExpCmdSN and MaxCmdSN are
 * filled in last, so that they are as fresh as can be.
 *
 * Pure: no sockets.  Bounds: TX_MAX_ITEMS items; the receiving side pauses long before.
 */
#ifndef SANLAB_TARGET_ISCSI_TX_H
#define SANLAB_TARGET_ISCSI_TX_H

#include <sys/queue.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/io.h"
#include "target/iscsi/iscsi.h"
#include "target/iscsi/params.h"
#include "target/iscsi/window.h"

enum {
	TX_SLOTS = 64,
	TX_IOV_MAX = 128,
	TX_MAX_ITEMS = 4096,
	TX_ITEMS_PER_SLAB = 16,	    /* a connection that is idle keeps one slab */
	TX_SMALL_BYTES = BHS_BYTES, /* data an item carries itself: sense, a rejected header */
};

/* What the portal's counters learn when the item's last byte has been written. */
enum iscsi_tally { TALLY_NONE, TALLY_COMMAND, TALLY_READ, TALLY_WRITE };

struct iscsi_tx_item {
	STAILQ_ENTRY(iscsi_tx_item) link;
	uint8_t bhs[BHS_BYTES];
	uint8_t small[TX_SMALL_BYTES];
	struct buf *buf;     /* one reference, released when sent; NULL for small data */
	const uint8_t *data; /* NULL: no data segment, or a lent one */
	const struct io_lent *lent;
	uint32_t data_bytes;
	bool data_in;	  /* cut into Data-In PDUs; bhs is their template */
	bool with_status; /* the last Data-In carries the status */
	enum iscsi_tally tally;
	uint32_t tally_bytes;
	/* progress of the cutting */
	uint32_t cut_bytes, burst_bytes, data_sn;
};

struct iscsi_tx_slot {
	uint8_t head[BHS_BYTES + DIGEST_BYTES];
	uint8_t tail[4 + DIGEST_BYTES]; /* padding, data digest */
	uint8_t head_bytes, tail_bytes;
	const uint8_t *data;
	const struct io_lent *lent; /* in place of data: from byte lent_skip on */
	uint32_t lent_skip;
	uint32_t data_bytes;
	struct iscsi_tx_item *last_of; /* the item ends with this slot */
};

STAILQ_HEAD(iscsi_tx_list, iscsi_tx_item);
struct iscsi_tx_slab;

struct iscsi_tx {
	struct iscsi_tx_list queue;
	struct iscsi_tx_list spare;
	struct iscsi_tx_slab *slabs;
	unsigned items;	       /* in use: queued or in slots */
	uint64_t queued_bytes; /* payload not yet written */
	uint32_t stat_sn;
	const struct iscsi_window *window; /* NULL before the session exists */
	const struct iscsi_params *params;
	bool header_digest, data_digest;
	struct iscsi_portal_counters *counters;
	struct iscsi_tx_slot slot[TX_SLOTS];
	unsigned first, filled; /* ring of slots */
	uint32_t first_sent;	/* bytes of the first slot already written */
};

void iscsi_tx_init(struct iscsi_tx *tx, const struct iscsi_params *params,
		   struct iscsi_portal_counters *counters);
/* Drops everything queued and frees the slabs. */
void iscsi_tx_done(struct iscsi_tx *tx);
/* Drops everything queued. */
void iscsi_tx_clear(struct iscsi_tx *tx);

/* A zeroed item; NULL at the limit or out of memory. */
struct iscsi_tx_item *iscsi_tx_new(struct iscsi_tx *tx);
/* Queues ITEM.  ADVANCE: it takes a StatSN of its own, else it only shows the next one. */
void iscsi_tx_push(struct iscsi_tx *tx, struct iscsi_tx_item *item, bool advance);
/* Digests count from the next item on; what is queued already goes without. */
void iscsi_tx_set_digests(struct iscsi_tx *tx, bool header, bool data);
/* How many Data-In PDUs DATA_BYTES will be cut into. */
uint32_t iscsi_tx_data_in_pdus(const struct iscsi_tx *tx, uint32_t data_bytes);

/* Fills IOV with what to write next; 0: nothing. */
unsigned iscsi_tx_iov(struct iscsi_tx *tx, struct iovec *iov, unsigned max);
/* BYTES of the last vector have been written. */
void iscsi_tx_sent(struct iscsi_tx *tx, size_t bytes);
static inline bool iscsi_tx_empty(const struct iscsi_tx *tx)
{
	return tx->filled == 0 && STAILQ_EMPTY(&tx->queue);
}

#endif
