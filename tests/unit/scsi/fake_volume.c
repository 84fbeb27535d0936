/* SPDX-License-Identifier: MIT
 *
 * The memory volume of the SCSI tests.
 */
#include "tests/unit/scsi/fake_volume.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/pool_status.h"

static void transfer(struct volume *volume, struct io *io)
{
	assert(io_in_range(&volume->layer, io));
	if (io->op == IO_READ || io->op == IO_WRITE)
		assert(iov_bytes(io->iov, io->iov_count) == io->length_bytes);
	else
		assert(io->iov_count == 0);
	if (volume->fail_status != 0) {
		io_complete(io, volume->fail_status);
		return;
	}
	if (io->op == IO_READ && volume->data)
		iov_from_mem(io->iov, io->iov_count, 0, volume->data + io->offset_bytes,
			     io->length_bytes);
	else if (io->op == IO_READ)
		iov_zero(io->iov, io->iov_count, 0, io->length_bytes);
	else if (io->op == IO_WRITE && volume->data)
		iov_to_mem(io->iov, io->iov_count, 0, volume->data + io->offset_bytes,
			   io->length_bytes);
	else if (io->op == IO_UNMAP && volume->data)
		memset(volume->data + io->offset_bytes, 0, io->length_bytes);
	io_complete(io, 0);
}

static void submit(struct io_layer *layer, struct io *io)
{
	struct volume *volume = container_of(layer, struct volume, layer);
	unsigned *const counters[] = {[IO_READ] = &volume->reads,
				      [IO_WRITE] = &volume->writes,
				      [IO_FLUSH] = &volume->flushes,
				      [IO_UNMAP] = &volume->unmaps};

	++*counters[io->op];
	volume->last = *io;
	if (!volume->deferred) {
		transfer(volume, io);
		return;
	}
	io->link = NULL;
	*volume->held_tail = io;
	volume->held_tail = &io->link;
	volume->held_count++;
}

static const struct io_layer_ops fake_ops = {.name = "fake", .submit = submit};

void fake_volume_init(struct volume *volume, const char *name, uint64_t size_bytes,
		      uint32_t block_bytes, bool thin, bool with_data)
{
	memset(volume, 0, sizeof *volume);
	volume->layer.ops = &fake_ops;
	volume->layer.size_bytes = size_bytes;
	volume->name = name;
	volume->block_bytes = block_bytes;
	volume->thin = thin;
	for (unsigned i = 0; i < sizeof volume->naa; i++)
		volume->naa[i] = (uint8_t)(i == 0 ? 0x60 : (unsigned char)name[0] + i);
	if (with_data) {
		volume->data = calloc(1, size_bytes);
		assert(volume->data);
	}
	volume->held_tail = &volume->held;
}

void fake_volume_done(struct volume *volume)
{
	assert(!volume->held);
	free(volume->data);
	volume->data = NULL;
}

void fake_volume_release(struct volume *volume, unsigned count)
{
	while (count-- > 0) {
		struct io *io = volume->held;

		assert(io);
		volume->held = io->link;
		if (!volume->held)
			volume->held_tail = &volume->held;
		volume->held_count--;
		transfer(volume, io);
	}
}

const char *volume_name(const struct volume *volume)
{
	return volume->name;
}

struct io_layer *volume_layer(struct volume *volume)
{
	return &volume->layer;
}

uint32_t volume_block_bytes(const struct volume *volume)
{
	return volume->block_bytes;
}

uint32_t volume_physical_block_bytes(const struct volume *volume)
{
	return volume->physical_block_bytes ? volume->physical_block_bytes : 4096;
}

bool volume_is_thin(const struct volume *volume)
{
	return volume->thin;
}

bool volume_is_read_only(const struct volume *volume)
{
	return volume->read_only;
}

bool volume_is_removable(const struct volume *volume)
{
	return volume->removable;
}

void volume_map_status(struct volume *volume, uint64_t offset_bytes, bool *ret_mapped,
		       uint64_t *ret_run_bytes)
{
	bool mapped = offset_bytes < volume->mapped_bytes;

	*ret_mapped = mapped;
	*ret_run_bytes = (mapped ? volume->mapped_bytes : volume->layer.size_bytes) - offset_bytes;
}

const char *volume_state_dir(const struct volume *volume)
{
	return volume->state_dir;
}

const uint8_t *volume_naa(const struct volume *volume)
{
	return volume->naa;
}

void volume_pool_space(const struct volume *volume, uint64_t *ret_used_bytes,
		       uint64_t *ret_total_bytes)
{
	*ret_used_bytes = volume->pool_used_bytes;
	*ret_total_bytes = volume->pool_total_bytes;
}

unsigned volume_thin_threshold_percent(const struct volume *volume)
{
	return volume->thin_threshold_percent;
}

uint64_t volume_allocated_bytes(const struct volume *volume)
{
	return volume->layer.size_bytes;
}

uint64_t volume_slice_changes(const struct volume *volume)
{
	return volume->slice_changes;
}

void volume_slice(const struct volume *volume, uint64_t offset_bytes,
		  const struct member **ret_member, uint64_t *ret_run_bytes)
{
	const size_t last = ARRAY_SIZE(volume->slices) - 1;
	uint64_t index = 0;

	if (volume->slice_bytes > 0)
		index = MIN_OF(offset_bytes / volume->slice_bytes, last);
	*ret_member = volume->slices[index];
	*ret_run_bytes = volume->slice_bytes == 0 || index == last
			     ? volume->layer.size_bytes - offset_bytes
			     : volume->slice_bytes - offset_bytes % volume->slice_bytes;
}
