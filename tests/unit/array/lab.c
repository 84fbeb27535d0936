/* SPDX-License-Identifier: MIT
 *
 * Small groups for tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "target/drive/vfs.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/rig.h"

void lab_init(struct lab *lab)
{
	*lab = (struct lab){.pool.name = "default"};
	lab->pool.members.items = lab->members;
	lab->group.pools = (struct cfg_list){&lab->pool, 1};
	lab->group.volumes.items = lab->volumes;
}

static int level_index(const char *raid)
{
	for (int i = 0; raid_level_names[i]; i++)
		if (strcmp(raid_level_names[i], raid) == 0)
			return i;
	fail_msg("no level %s", raid);
	return -1;
}

struct member_config *lab_member(struct lab *lab, const char *name, const char *raid,
				 unsigned drives, uint64_t drive_bytes)
{
	assert_true(lab->pool.members.count < LAB_MEMBERS);
	struct member_config *member = &lab->members[lab->pool.members.count++];
	*member = (struct member_config){
	    .name = name,
	    .drives = {.count = drives, .size_bytes = drive_bytes},
	    .raid = level_index(raid),
	    .chunk_bytes = 64 * 1024,
	    .timing = DRIVE_TIMING_NONE,
	    .store_kind = "memory",
	};
	return member;
}

struct volume_config *lab_volume(struct lab *lab, const char *name, uint64_t size, bool thin)
{
	assert_true(lab->group.volumes.count < LAB_VOLUMES);
	struct volume_config *volume = &lab->volumes[lab->group.volumes.count++];
	*volume = (struct volume_config){
	    .name = name, .pool = "default", .size_bytes = size, .thin = thin, .block_bytes = 512};
	return volume;
}

int lab_open(struct lab *lab, struct err *err)
{
	assert_int_equal(loop_new_virtual(0, &lab->loop), 0);
	int rc = group_open(lab->loop, &lab->group, "test", 42, &lab->open, err);
	if (rc)
		lab->loop = loop_free(lab->loop);
	return rc;
}

void lab_close(struct lab *lab)
{
	lab->open = group_close(lab->open);
	lab->loop = loop_free(lab->loop);
}

struct io_layer *lab_layer(struct lab *lab, const char *volume)
{
	struct volume *found = group_find_volume(lab->open, volume);
	assert_non_null(found);
	return volume_layer(found);
}

int lab_io(struct lab *lab, const char *volume, enum io_op op, uint64_t offset, void *data,
	   uint64_t length)
{
	return io_wait(lab->loop, lab_layer(lab, volume), op, offset, data, length);
}

void lab_opens(struct lab *lab)
{
	struct err err = {0};

	if (lab_open(lab, &err))
		fail_msg("%s", err.what);
}

void lab_refuses(struct lab *lab, int rc, const char *what)
{
	struct err err = {0};

	assert_int_equal(lab_open(lab, &err), rc);
	if (!strstr(err.what, what))
		fail_msg("'%s' is not in '%s'", what, err.what);
	assert_true(err.hint[0] != 0);
}

enum { PAGES = 8, PAGE_DATA_BYTES = 4096 };

void lab_write_pages(struct lab *lab, uint8_t value)
{
	uint8_t data[PAGE_DATA_BYTES];

	memset(data, value, sizeof data);
	for (uint64_t i = 0; i < PAGES; i++)
		assert_int_equal(lab_io(lab, "a", IO_WRITE, i * POOL_PAGE_BYTES, data, sizeof data),
				 0);
}

void lab_expect_pages(struct lab *lab, uint8_t value)
{
	uint8_t data[PAGE_DATA_BYTES], wanted[PAGE_DATA_BYTES];

	memset(wanted, value, sizeof wanted);
	for (uint64_t i = 0; i < PAGES; i++) {
		assert_int_equal(lab_io(lab, "a", IO_READ, i * POOL_PAGE_BYTES, data, sizeof data),
				 0);
		assert_memory_equal(data, wanted, sizeof data);
	}
}

static int sync_nothing(int fd)
{
	return 0;
}

void lab_sync_nothing(void)
{
	static struct vfs_ops fast;

	fast = vfs_system;
	fast.sync = sync_nothing;
	vfs = &fast;
}
