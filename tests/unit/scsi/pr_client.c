/* SPDX-License-Identifier: MIT
 *
 * Building and reading what PERSISTENT RESERVE IN and OUT carry.
 */
#include "tests/unit/scsi/pr_client.h"

uint32_t outcome(const struct request *request)
{
	if (request->task.status == SCSI_CHECK_CONDITION)
		return request_sense_code(request);
	return request->task.status;
}

uint32_t pr_out_list(struct scsi_nexus *nexus, enum pr_action action, uint8_t scope_type,
		     const void *list, uint32_t length, uint32_t edtl_bytes)
{
	uint8_t cdb[10] = {0x5f, (uint8_t)action, scope_type};
	struct request request = {0};
	uint32_t result;

	put_be32(cdb + 5, length);
	request_run(&request, nexus, LUN_THIN, cdb, sizeof cdb, list, edtl_bytes);
	result = outcome(&request);
	request_release(&request);
	return result;
}

void pr_list(uint8_t list[24], uint64_t key, uint64_t service_key, uint8_t flags)
{
	memset(list, 0, 24);
	put_be64(list, key);
	put_be64(list + 8, service_key);
	list[20] = flags;
}

uint32_t pr_out(struct scsi_nexus *nexus, enum pr_action action, uint8_t type, uint64_t key,
		uint64_t service_key, uint8_t flags)
{
	uint8_t list[24];

	pr_list(list, key, service_key, flags);
	return pr_out_list(nexus, action, type, list, sizeof list, sizeof list);
}

uint32_t pr_in(struct scsi_nexus *nexus, uint8_t action, uint8_t *out, uint16_t allocation_bytes)
{
	uint8_t cdb[10] = {0x5e, action};
	struct request request = {0};
	uint32_t bytes;

	put_be16(cdb + 7, allocation_bytes);
	request_run(&request, nexus, LUN_THIN, cdb, sizeof cdb, NULL, allocation_bytes);
	assert_int_equal(outcome(&request), 0);
	bytes = request.task.in_bytes;
	assert_true(bytes <= allocation_bytes);
	memset(out, 0, allocation_bytes);
	if (bytes > 0)
		memcpy(out, request.task.in_buf->data, bytes);
	request_release(&request);
	return bytes;
}

void expect_keys(struct scsi_nexus *nexus, uint32_t generation, unsigned count,
		 const uint64_t *keys)
{
	uint8_t data[512];
	uint32_t bytes = pr_in(nexus, 0, data, sizeof data);

	assert_int_equal(get_be32(data), generation);
	assert_int_equal(get_be32(data + 4), 8 * count);
	assert_int_equal(bytes, 8 + 8 * count);
	for (unsigned i = 0; i < count; i++)
		assert_true(get_be64(data + 8 + 8 * (size_t)i) == keys[i]);
}

void expect_reservation(struct scsi_nexus *nexus, uint8_t type, uint64_t key)
{
	uint8_t data[64];
	uint32_t bytes = pr_in(nexus, 1, data, sizeof data);

	if (type == PR_NONE) {
		assert_int_equal(bytes, 8);
		assert_int_equal(get_be32(data + 4), 0);
		return;
	}
	assert_int_equal(bytes, 24);
	assert_int_equal(get_be32(data + 4), 16);
	assert_true(get_be64(data + 8) == key);
	assert_int_equal(data[21], type);
}

uint32_t run_cdb(struct scsi_nexus *nexus, const uint8_t *cdb, size_t cdb_bytes)
{
	struct request request = {0};
	uint32_t result;

	request_run(&request, nexus, LUN_THIN, cdb, cdb_bytes, NULL, 512);
	result = outcome(&request);
	request_release(&request);
	return result;
}

uint32_t tur(struct scsi_nexus *nexus)
{
	return run_cdb(nexus, CDB(0, 0, 0, 0, 0, 0));
}
