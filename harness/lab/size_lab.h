/* SPDX-License-Identifier: MIT
 *
 * A sizing as people read it, and as a lab file: the table of figures stands above the lab as its
 * comment, so that one text is both.
 */
#ifndef SANLAB_HARNESS_LAB_SIZE_LAB_H
#define SANLAB_HARNESS_LAB_SIZE_LAB_H

#include <stdio.h>

#include "harness/workload/exchange_sizing.h"
#include "target/array/preset.h"

/* How many arrays of a kind the load and the data need. */
struct size_array {
	struct preset_facts facts;
	double drive_iops;	      /* random reads of a page, one after the other */
	double backend_iops;	      /* of all drives: a small write costs several */
	double usable_bytes;	      /* of one array */
	unsigned for_iops, for_space; /* arrays */
	unsigned count, drives;	      /* arrays, and drives in them with spares */
	unsigned iops_drives;	      /* drives that the load alone needs, without spares */
};

void size_array(const struct exchange_sizing *sizing, int model, struct size_array *ret_array);
/* The table, and a lab of one array MODEL with its share of the servers' databases. */
int size_put_lab(const struct exchange_sizing *sizing, int model, FILE *to);

#endif
