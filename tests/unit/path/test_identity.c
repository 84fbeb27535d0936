/* SPDX-License-Identifier: MIT
 *
 * Parsers of INQUIRY, VPD, READ CAPACITY and MODE SENSE data, also of broken ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "initiator/path/identity.h"

static void inquiry(void **unused)
{
	static const uint8_t names[28] = "EQLOGIC 100E-00         5.2 ";
	uint8_t data[36] = {0, 0, 6, 2, 31, 0x30};
	struct identity_facts facts = {0};

	memcpy(data + 8, names, sizeof names);
	assert_int_equal(identity_inquiry(data, sizeof data, &facts), 0);
	assert_string_equal(facts.identity.vendor, "EQLOGIC");
	assert_string_equal(facts.identity.product, "100E-00");
	assert_string_equal(facts.identity.revision, "5.2");
	assert_int_equal(facts.identity.tpgs, 3);
	assert_int_equal(facts.version, 6);
	assert_int_equal(identity_inquiry(data, 35, &facts), -EPROTO);
	data[0] = 0x7f; /* no unit at this LUN */
	assert_int_equal(identity_inquiry(data, sizeof data, &facts), -EPROTO);
	data[0] = 0x01; /* a tape */
	assert_int_equal(identity_inquiry(data, sizeof data, &facts), -EPROTO);
}

static void best_designator_wins(void **unused)
{
	static const uint8_t page[] = {
	    0,	  0x83, 0,    4 + 9 + 4 + 8 + 4 + 8 + 4 + 16 + 4 + 16 + 4 + 4 + 4 + 4,
	    2,	  0x01, 0,    9,
	    'S',  'A',	'N',  'L',
	    'A',  'B',	' ',  ' ',
	    'x', /* T10 */
	    1,	  0x02, 0,    8,
	    1,	  1,	1,    1,
	    1,	  1,	1,    1, /* EUI-64 */
	    1,	  0x03, 0,    8,
	    0x50, 2,	2,    2,
	    2,	  2,	2,    2, /* NAA 5 */
	    1,	  0x03, 0,    16,
	    0x60, 3,	3,    3,
	    3,	  3,	3,    3,
	    3,	  3,	3,    3,
	    3,	  3,	3,    3, /* NAA 6 */
	    1,	  0x93, 0,    16,
	    0x60, 4,	4,    4,
	    4,	  4,	4,    4,
	    4,	  4,	4,    4,
	    4,	  4,	4,    4, /* a port's */
	    1,	  0x94, 0,    4,
	    0,	  0,	0,    7, /* relative target port */
	    1,	  0x95, 0,    4,
	    0,	  0,	0x12, 0x34, /* target port group */
	};
	struct identity_facts facts = {0};

	assert_int_equal(identity_vpd_designators(page, sizeof page, &facts), 0);
	assert_int_equal(facts.identity.designator_bytes, 16);
	assert_int_equal(facts.identity.designator[0], 0x60);
	assert_int_equal(facts.identity.designator[1], 3);
	assert_int_equal(facts.identity.relative_port, 7);
	assert_int_equal(facts.identity.target_port_group, 0x1234);
	/* Cut short: what is whole counts. */
	facts = (struct identity_facts){0};
	assert_int_equal(identity_vpd_designators(page, 4 + 4 + 9 + 4 + 8 + 6, &facts), 0);
	assert_int_equal(facts.identity.designator_bytes, 8);
	assert_int_equal(facts.identity.designator[0], 1);
	facts = (struct identity_facts){0};
	assert_int_equal(identity_vpd_designators(page, 4 + 4 + 9, &facts), 0);
	assert_memory_equal(facts.identity.designator, "SANLAB", 6);
	/* Not this page: a target that ignores EVPD. */
	assert_int_equal(identity_vpd_serial(page, sizeof page, &facts), -EPROTO);
	assert_int_equal(identity_vpd_designators(page, 3, &facts), -EPROTO);
}

static void serial_is_the_last_resort(void **unused)
{
	static const uint8_t page[] = {0, 0x80, 0, 8, ' ', ' ', 'A', '1', '2', ' ', ' ', 0};
	struct identity_facts facts = {0};

	assert_int_equal(identity_vpd_serial(page, sizeof page, &facts), 0);
	assert_int_equal(facts.identity.designator_bytes, 3);
	assert_memory_equal(facts.identity.designator, "A12", 3);
	assert_string_equal(facts.identity.serial, "A12");
	facts = (struct identity_facts){.rank = 2, .identity = {.designator_bytes = 2}};
	assert_int_equal(identity_vpd_serial(page, sizeof page, &facts), 0);
	assert_int_equal(facts.identity.designator_bytes, 2);
	assert_string_equal(facts.identity.serial, "A12");
}

static int portal_group_of(const char *name, size_t size)
{
	uint8_t page[128] = {0, 0x83, 0, (uint8_t)(4 + size), 0x53, 0x98, 0, (uint8_t)size};
	struct identity_facts facts = identity_unknown();

	assert_true(size <= sizeof page - 8);
	for (size_t i = 0; name[i]; i++)
		page[8 + i] = (uint8_t)name[i];
	assert_int_equal(identity_vpd_designators(page, 8 + size, &facts), 0);
	return facts.identity.portal_group;
}

static void portal_groups(void **unused)
{
	assert_int_equal(portal_group_of("iqn.2026-11.test:a,t,0x0001", 28), 1);
	assert_int_equal(portal_group_of("iqn.2026-11.test:a,t,0xfFa0", 32), 0xffa0);
	assert_int_equal(portal_group_of("iqn.2026-11.test:a,t,0x7", 24), 7); /* not padded */
	assert_int_equal(portal_group_of("iqn.2026-11.test:a,t,0x", 24), -1);
	assert_int_equal(portal_group_of("iqn.2026-11.test:a", 20), -1);
	assert_int_equal(portal_group_of("", 0), -1);
}

static void extended(void **unused)
{
	uint8_t page[64] = {0, 0x86, 0, 60, 0, 0, 0, 0, 0x10};
	struct identity_facts facts = {0};

	assert_int_equal(identity_vpd_extended(page, sizeof page, &facts), 0);
	assert_true(facts.identity.referrals);
	assert_int_equal(identity_vpd_extended(page, 8, &facts), 0);
	assert_false(facts.identity.referrals);
	page[1] = 0x83;
	assert_int_equal(identity_vpd_extended(page, sizeof page, &facts), -EPROTO);
}

static void limits(void **unused)
{
	uint8_t page[64] = {0, 0xb0, 0, 60};
	struct identity_facts facts = {0};

	put_be32(page + 8, 8192);
	put_be32(page + 20, 65536);
	put_be32(page + 24, 1);
	assert_int_equal(identity_vpd_limits(page, sizeof page, &facts), 0);
	assert_int_equal(facts.identity.max_transfer_blocks, 8192);
	assert_int_equal(facts.identity.max_unmap_blocks, 65536);
	assert_true(facts.told_unmap);
	/* SBC-2: 16 bytes, no UNMAP. */
	facts = (struct identity_facts){0};
	page[3] = 12;
	assert_int_equal(identity_vpd_limits(page, 16, &facts), 0);
	assert_int_equal(facts.identity.max_transfer_blocks, 8192);
	assert_false(facts.told_unmap);
	assert_int_equal(identity_vpd_limits(page, 10, &facts), -EPROTO);
}

static void capacities(void **unused)
{
	uint8_t data[32] = {0};
	struct identity_facts facts = {0};

	put_be64(data, 0x1ffffffff);
	put_be32(data + 8, 512);
	data[14] = 0x80;
	assert_int_equal(identity_capacity16(data, sizeof data, &facts), 0);
	assert_int_equal(facts.identity.blocks, 0x200000000);
	assert_int_equal(facts.identity.block_bytes, 512);
	assert_true(facts.lbpme);
	assert_int_equal(identity_capacity16(data, 12, &facts), 0);
	assert_false(facts.lbpme);
	assert_int_equal(identity_capacity16(data, 11, &facts), -EPROTO);
	put_be32(data + 8, 520);
	assert_int_equal(identity_capacity16(data, sizeof data, &facts), -EPROTO);
	put_be32(data + 8, 0);
	assert_int_equal(identity_capacity16(data, sizeof data, &facts), -EPROTO);
	put_be32(data + 8, 4096);
	put_be64(data, UINT64_MAX);
	assert_int_equal(identity_capacity16(data, sizeof data, &facts), -EPROTO);

	memset(data, 0, sizeof data);
	put_be32(data, 2047);
	put_be32(data + 4, 4096);
	assert_int_equal(identity_capacity10(data, 8, &facts), 0);
	assert_int_equal(facts.identity.blocks, 2048);
	put_be32(data, UINT32_MAX);
	assert_int_equal(identity_capacity10(data, 8, &facts), -EPROTO);
	assert_int_equal(identity_capacity10(data, 7, &facts), -EPROTO);
}

static void mode(void **unused)
{
	static const uint8_t both[] = {3, 0, 0x90, 0}, none[] = {3, 0, 0, 0};
	struct identity_facts facts = {0};

	assert_int_equal(identity_mode6(both, 4, &facts), 0);
	assert_true(facts.identity.write_protected);
	assert_true(facts.dpofua);
	assert_int_equal(identity_mode6(none, 4, &facts), 0);
	assert_false(facts.identity.write_protected);
	assert_false(facts.dpofua);
	assert_int_equal(identity_mode6(none, 3, &facts), -EPROTO);
}

/* Whatever comes, nothing outside of it is read (for the sanitizers to see). */
static void noise(void **unused)
{
	static int (*const parsers[])(const uint8_t *, size_t, struct identity_facts *) = {
	    identity_inquiry,	 identity_vpd_designators, identity_vpd_serial,
	    identity_vpd_limits, identity_vpd_extended,	   identity_capacity16,
	    identity_capacity10, identity_mode6,
	};
	static const uint8_t pages[] = {0, 0x83, 0x80, 0x86, 0xb0};
	struct rng rng;

	rng_init(&rng, 3, 3);
	for (unsigned i = 0; i < 20000; i++) {
		size_t size = rng_below(&rng, 80);
		uint8_t *data = malloc(size + !size);
		struct identity_facts facts = {0};

		assert_non_null(data);
		rng_fill(&rng, data, size);
		if (size > 3 && rng_below(&rng, 2)) {
			data[1] = pages[rng_below(&rng, sizeof pages)];
			data[2] = 0;
		}
		for (size_t n = 0; n < ARRAY_SIZE(parsers); n++)
			parsers[n](data, size, &facts);
		assert_true(facts.identity.designator_bytes <= sizeof facts.identity.designator);
		free(data);
	}
}

/* Access is lost, or comes back, between the steps: nothing half known remains. */
static void access_comes_and_goes(void **unused)
{
	static const uint8_t capacity[32] = {[7] = 99, [10] = 2, [14] = 0x80};
	uint8_t inquiry[36] = {0x20, 0, 6};
	struct identity_facts facts = identity_unknown();
	unsigned steps = 1;

	assert_int_equal(identity_inquiry(inquiry, sizeof inquiry, &facts), -EPROTO);
	assert_false(
	    identity_without_access(1, 2, 4, 0x0b, &facts)); /* INQUIRY is always allowed */
	assert_false(identity_without_access(0, 2, 4, 0x0a, &facts));
	assert_false(identity_without_access(0, 6, 4, 0x0b, &facts));
	assert_int_equal(identity_capacity16(capacity, sizeof capacity, &facts), 0);
	facts.told_unmap = true;
	identity_conclude(&facts);
	assert_true(facts.identity.can_unmap && !facts.identity.no_capacity);
	assert_int_equal(facts.identity.blocks, 100);
	/* MODE SENSE */
	assert_true(identity_without_access(IDENTITY_STEPS - 1, 2, 4, 0x12, &facts));
	identity_conclude(&facts);
	assert_true(facts.identity.no_capacity);
	assert_int_equal(facts.identity.blocks, 0);

	facts = identity_unknown();
	assert_true(identity_without_access(0, 2, 4, 0x0c, &facts));
	assert_int_equal(identity_inquiry(inquiry, sizeof inquiry, &facts), 0);
	for (unsigned step = 0; (step = identity_next_step(step, &facts)) < IDENTITY_STEPS; steps++)
		assert_int_equal(identity_steps[step].cdb[0], 0x12);
	assert_int_equal(steps, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(inquiry),
	    cmocka_unit_test(best_designator_wins),
	    cmocka_unit_test(serial_is_the_last_resort),
	    cmocka_unit_test(portal_groups),
	    cmocka_unit_test(extended),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(capacities),
	    cmocka_unit_test(mode),
	    cmocka_unit_test(noise),
	    cmocka_unit_test(access_comes_and_goes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
