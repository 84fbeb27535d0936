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

/* The layer of a volume; requests that wait for their end. */
struct io_layer *lab_layer(struct lab *lab, const char *volume);
int lab_io(struct lab *lab, const char *volume, enum io_op op, uint64_t offset, void *data,
	   uint64_t length);

#endif
