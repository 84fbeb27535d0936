/* SPDX-License-Identifier: MIT
 *
 * The transport of the SCSI tests.
 */
#include "tests/unit/scsi/fixture.h"

#include <stdlib.h>

static void consume_attention(struct scsi_nexus *nexus, unsigned lun)
{
	struct request request = {0};

	request_run(&request, nexus, lun, CDB(0, 0, 0, 0, 0, 0), NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x062900);
	request_release(&request);
}

int fixture_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	struct volume *const volumes[] = {&fixture->thin, &fixture->thick, &fixture->huge};

	assert_non_null(fixture);
	assert_int_equal(loop_new_virtual(0, &fixture->loop), 0);
	fixture->pool = buf_pool_new(64 * MIB);
	fixture->device = scsi_device_new(fixture->loop, fixture->pool);
	fixture->target = scsi_target_new(fixture->device, "iqn.2026-11.test.sanlab:unit:t");
	assert_non_null(fixture->target);
	fake_volume_init(&fixture->thin, "db1", THIN_BYTES, 512, true, true);
	fake_volume_init(&fixture->thick, "Log volume with a long name", MIB, 4096, false, true);
	fake_volume_init(&fixture->huge, "huge", HUGE_BYTES, 512, true, false);
	for (unsigned i = 0; i < ARRAY_SIZE(volumes); i++) {
		struct scsi_lu *lu = scsi_device_add(fixture->device, volumes[i]);

		assert_non_null(lu);
		assert_ptr_equal(scsi_device_add(fixture->device, volumes[i]), lu);
		assert_int_equal(scsi_target_add_lun(fixture->target, i, lu), 0);
	}
	fixture->a = scsi_nexus_new(fixture->target, "iqn.2026-11.test:a",
				    (const uint8_t[6]){0x80, 0, 0, 0, 0, 1}, 1, 1);
	fixture->b = scsi_nexus_new(fixture->target, "iqn.2026-11.test:b",
				    (const uint8_t[6]){0x80, 0, 0, 0, 0, 2}, 2, 0x102);
	assert_non_null(fixture->a);
	assert_non_null(fixture->b);
	for (unsigned i = 0; i < ARRAY_SIZE(volumes); i++) {
		consume_attention(fixture->a, i);
		consume_attention(fixture->b, i);
	}
	*state = fixture;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;

	scsi_nexus_free(fixture->a);
	scsi_nexus_free(fixture->b);
	scsi_target_free(fixture->target);
	scsi_device_free(fixture->device);
	assert_int_equal(buf_pool_in_use_bytes(fixture->pool), 0);
	buf_pool_free(fixture->pool);
	fake_volume_done(&fixture->thin);
	fake_volume_done(&fixture->thick);
	fake_volume_done(&fixture->huge);
	loop_free(fixture->loop);
	free(fixture);
	return 0;
}

static void on_done(struct scsi_task *task)
{
	struct request *request = task->owner;

	request->done_count++;
}

void request_prepare(struct request *request, struct scsi_nexus *nexus, unsigned lun,
		     const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl_bytes)
{
	struct scsi_task *task = &request->task;

	task->nexus = nexus;
	memset(task->lun, 0, sizeof task->lun);
	task->lun[1] = (uint8_t)lun;
	memset(task->cdb, 0, sizeof task->cdb);
	memcpy(task->cdb, cdb, cdb_bytes);
	task->edtl_bytes = edtl_bytes;
	task->done = on_done;
	task->owner = request;
	request->done_count = 0;
	request->prepared = scsi_prepare(task);
}

void request_execute(struct request *request, const void *out)
{
	struct scsi_task *task = &request->task;
	uint32_t bytes = MIN_OF(task->out_bytes, task->edtl_bytes);
	uint32_t first = bytes / 5, second = bytes / 3;

	if (request->prepared == SCSI_NEEDS_DATA) {
		uint8_t *from = (uint8_t *)(uintptr_t)out;

		request->iov[0] = (struct iovec){from, first};
		request->iov[1] = (struct iovec){from + first, second};
		request->iov[2] = (struct iovec){from + first + second, bytes - first - second};
		task->out_iov = request->iov;
		task->out_iov_count = ARRAY_SIZE(request->iov);
		task->out_got_bytes = bytes;
	}
	scsi_execute(task);
}

void request_run(struct request *request, struct scsi_nexus *nexus, unsigned lun,
		 const uint8_t *cdb, size_t cdb_bytes, const void *out, uint32_t edtl_bytes)
{
	request_prepare(request, nexus, lun, cdb, cdb_bytes, edtl_bytes);
	if (request->prepared != SCSI_ENDED) {
		request_execute(request, out);
		assert_int_equal(request->done_count, 1);
	}
}

void request_release(struct request *request)
{
	scsi_task_release(&request->task);
	assert_null(request->task.in_buf);
}

uint32_t request_sense_code(const struct request *request)
{
	const struct scsi_task *task = &request->task;

	assert_int_equal(task->status, SCSI_CHECK_CONDITION);
	assert_int_equal(task->sense_bytes, 18);
	assert_int_equal(task->sense[0] & 0x7f, 0x70); /* VALID or not */
	assert_int_equal(task->sense[7], 10);
	return (uint32_t)(task->sense[2] & 0x0f) << 16 | (uint32_t)task->sense[12] << 8 |
	       task->sense[13];
}

const uint8_t *request_good_in(struct request *request, struct scsi_nexus *nexus, unsigned lun,
			       const uint8_t *cdb, size_t cdb_bytes)
{
	request_run(request, nexus, lun, cdb, cdb_bytes, NULL, 65536);
	assert_int_equal(request->task.status, SCSI_GOOD);
	assert_non_null(request->task.in_buf);
	assert_int_equal(request->task.transfer_bytes, request->task.in_bytes);
	return request->task.in_buf->data;
}

void request_expect(struct scsi_nexus *nexus, unsigned lun, const uint8_t *cdb, size_t cdb_bytes,
		    const void *out, uint32_t out_bytes, uint32_t code)
{
	struct request request = {0};

	request_run(&request, nexus, lun, cdb, cdb_bytes, out, out ? out_bytes : 65536);
	if (code == 0)
		assert_int_equal(request.task.status, SCSI_GOOD);
	else
		assert_int_equal(request_sense_code(&request), code);
	request_release(&request);
}

void cdb16(uint8_t cdb[16], uint8_t opcode, uint8_t flags, uint64_t lba, uint32_t blocks)
{
	memset(cdb, 0, 16);
	cdb[0] = opcode;
	cdb[1] = flags;
	put_be64(cdb + 2, lba);
	put_be32(cdb + 10, blocks);
}
