/* SPDX-License-Identifier: MIT
 *
 * Asking the target where the blocks are: REPORT REFERRALS over and over until the end of the unit,
 * after the first login, when the target says that pages have moved, and periodically, because new
 * pages come without a word.  A failure leaves the map there is; a target that does not know the
 * command (any more) has none.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"

enum {
	ALLOCATION_BYTES = 64 << 10,
	RETRY_NS = 1000 * 1000 * 1000,
	COST_SHARE = 50, /* asking takes at most a fiftieth of the time */
};

static void ask(struct mpio *m);

static void timer_due(void *arg)
{
	struct mpio *m = arg;

	m->depth++;
	mpio_referrals_refresh(m);
	m->depth--;
}

/* STATUS: of the whole map. */
static void ended(struct mpio *m, int status)
{
	struct mpio_referrals *ref = &m->referrals;
	uint64_t now = loop_now_ns(m->loop), pause_ns = m->config.slice_refresh_ns;

	ref->busy = false;
	if (status == 0) {
		slice_map_commit(ref->map, m->unit.block_bytes);
		pause_ns = MAX_OF(pause_ns, (now - ref->begun_ns) * COST_SHARE);
	} else {
		pause_ns = MIN_OF(pause_ns, (uint64_t)RETRY_NS);
	}
	loop_timer_set(m->loop, &ref->timer, now + pause_ns);
	if (ref->again && status == 0)
		mpio_referrals_refresh(m);
}

static void answered(struct path_command *command)
{
	struct mpio *m = command->owner;
	struct mpio_referrals *ref = &m->referrals;
	int r = -EIO;

	if (m->freeing) {
		ref->busy = false;
		return;
	}
	m->depth++;
	if (command->result == PATH_OK)
		r = slice_map_add(ref->map, ref->next_lba, ref->data, command->got_bytes,
				  &ref->next_lba);
	if (r == 0 && ref->next_lba < m->unit.blocks && m->views[ref->path].able)
		ask(m);
	else
		ended(m, r == 0 && ref->next_lba < m->unit.blocks ? -EIO : r);
	m->depth--;
}

static void ask(struct mpio *m)
{
	struct mpio_referrals *ref = &m->referrals;

	ref->command = (struct path_command){
	    .cdb = {0x9e, 0x13},
	    .cdb_bytes = 16,
	    .data = ref->data,
	    .data_bytes = ALLOCATION_BYTES,
	    .done = answered,
	    .owner = m,
	};
	put_be64(ref->command.cdb + 2, ref->next_lba);
	put_be32(ref->command.cdb + 10, ALLOCATION_BYTES);
	path_command(m->paths[ref->path]->path, &ref->command);
}

void mpio_referrals_refresh(struct mpio *m)
{
	struct mpio_referrals *ref = &m->referrals;
	bool unknown = false;

	if (!m->policy->needs_slices || m->freeing)
		return;
	ref->again = ref->busy;
	if (ref->busy)
		return;
	if (!ref->data)
		ref->data = malloc(ALLOCATION_BYTES);
	for (unsigned i = 0; ref->data && i < m->count; i++) {
		if (!m->views[i].able)
			continue;
		if (!m->paths[i]->path->identity.referrals) {
			unknown = true;
			continue;
		}
		ref->path = i;
		ref->next_lba = 0;
		ref->begun_ns = loop_now_ns(m->loop);
		ref->busy = true;
		slice_map_begin(ref->map);
		ask(m);
		return;
	}
	if (unknown)
		slice_map_clear(ref->map);
	loop_timer_set(m->loop, &ref->timer, loop_now_ns(m->loop) + m->config.slice_refresh_ns);
}

/* INSPECT REFERRALS SENSE DESCRIPTORS: pages have moved; ASYMMETRIC ACCESS STATE CHANGED: their
 * owners may be others. */
void mpio_referrals_sense(struct mpio *m, const struct path_io *pio)
{
	if (pio->sense_key == 0x6 &&
	    ((pio->asc == 0x3f && pio->ascq == 0x15) || (pio->asc == 0x2a && pio->ascq == 0x06)))
		mpio_referrals_refresh(m);
}

void mpio_referrals_path_up(struct mpio *m)
{
	if (!m->referrals.busy && !slice_map_runs(m->referrals.map))
		mpio_referrals_refresh(m);
}

int mpio_referrals_init(struct mpio *m)
{
	struct mpio_referrals *ref = &m->referrals;

	loop_timer_init(&ref->timer, timer_due, m);
	return slice_map_new(&ref->map);
}

void mpio_referrals_done(struct mpio *m)
{
	assert(!m->referrals.busy);
	loop_timer_cancel(m->loop, &m->referrals.timer);
	free(m->referrals.data);
	slice_map_free(m->referrals.map);
}
