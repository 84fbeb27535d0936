/* SPDX-License-Identifier: MIT
 *
 * The per-path ledger: what this path has really carried.
 */
#include "initiator/mpio/device.h"

#include <string.h>

void mpio_ledger_count(struct mpio *m, const struct mpio_req *req)
{
	struct mpio_ledger *ledger = &m->paths[req->path]->ledger;
	uint64_t took_ns = loop_now_ns(m->loop) - req->sent_ns;

	ledger->ios++;
	if (req->pio.op == IO_READ) {
		ledger->reads++;
		ledger->read_bytes += req->length_bytes;
	} else if (req->pio.op == IO_WRITE) {
		ledger->writes++;
		ledger->write_bytes += req->length_bytes;
	}
	/* Half the time after which the path would have been given up. */
	if (took_ns > m->config.io_timeout_ns / 2) {
		ledger->slow_warnings++;
		mpio_path_mark(m->paths[req->path], "slow to answer");
	}
	hist_record(&ledger->latency, took_ns);
}

void mpio_ledger_reset(struct mpio *mpio)
{
	for (unsigned i = 0; i < mpio->count; i++)
		memset(&mpio->paths[i]->ledger, 0, sizeof mpio->paths[i]->ledger);
}
