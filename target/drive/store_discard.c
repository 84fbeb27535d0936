/* SPDX-License-Identifier: MIT
 *
 * The discard store: a drive that keeps nothing and reads as zeros.  For studies of timing alone,
 * in which hours of load would fill any memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/drive/drive.h"

static void discard_submit(struct io_layer *layer, struct io *io)
{
	bool fits = io_in_range(layer, io);

	if (fits && io->op == IO_READ && !(io->flags & IO_BLIND))
		iov_zero(io->iov, io->iov_count, 0, io->length_bytes);
	io_complete(io, fits ? 0 : -ERANGE);
}

static void discard_free(struct io_layer *layer)
{
	free(layer);
}

static const struct io_layer_ops discard_layer_ops = {
    .name = "discard store",
    .submit = discard_submit,
    .free = discard_free,
};

static int discard_open(struct loop *loop, const char *place, const char *name, uint64_t size_bytes,
			struct io_layer **ret_layer, struct err *err)
{
	struct io_layer *layer = calloc(1, sizeof *layer);

	if (!layer)
		return err_set(err, -ENOMEM, "no memory for drive %s", name);
	*layer = (struct io_layer){.ops = &discard_layer_ops, .size_bytes = size_bytes};
	*ret_layer = layer;
	return 0;
}

const struct store_ops store_discard_ops = {
    .name = "discard", .open = discard_open, .forgets = true};
