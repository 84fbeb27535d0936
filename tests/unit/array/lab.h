/* SPDX-License-Identifier: MIT
 *
 * Small groups for tests, described in C in place of a lab file.
 */
#ifndef SANLAB_TESTS_ARRAY_LAB_H
#define SANLAB_TESTS_ARRAY_LAB_H

#include "target/array/array.h"

enum { LAB_MEMBERS = 4, LAB_VOLUMES = 4 };

struct lab {
	struct member_config members[LAB_MEMBERS];
	struct volume_config volumes[LAB_VOLUMES];
	struct pool_config pool;
	struct group_config group;
	struct loop *loop;
	struct group *open;
};

/* Members and volumes are added before lab_open. */
void lab_init(struct lab *lab);
struct member_config *lab_member(struct lab *lab, const char *name, const char *raid,
				 unsigned drives, uint64_t drive_bytes);
struct volume_config *lab_volume(struct lab *lab, const char *name, uint64_t size, bool thin);
int lab_open(struct lab *lab, struct err *err);
void lab_close(struct lab *lab);
/* It must; it must fail with RC, an error that says WHAT, and a hint. */
void lab_opens(struct lab *lab);
void lab_refuses(struct lab *lab, int rc, const char *what);

/* The layer of a volume; requests that wait for their end. */
struct io_layer *lab_layer(struct lab *lab, const char *volume);
int lab_io(struct lab *lab, const char *volume, enum io_op op, uint64_t offset, void *data,
	   uint64_t length);
/* 4 KiB of VALUE at the beginning of each of the first 8 pages of volume "a". */
void lab_write_pages(struct lab *lab, uint8_t value);
void lab_expect_pages(struct lab *lab, uint8_t value);

/* From now on fsync does nothing: a process that dies keeps what it wrote, and tests that kill none
 * of the host need no slow disk. */
void lab_sync_nothing(void);

#endif
