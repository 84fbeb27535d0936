/* SPDX-License-Identifier: MIT
 *
 * Ranges of IP addresses: 10.1.0.0/16, 192.0.2.7, fd00::/8, ::1.
 *
 * IPv4 addresses are kept as IPv4-mapped IPv6 ones, so that a peer that came through either kind of
 * socket is the same.
 */
#ifndef SANLAB_BASE_CIDR_H
#define SANLAB_BASE_CIDR_H

#include <stdbool.h>
#include <stdint.h>

struct cidr {
	uint8_t address[16];
	unsigned prefix_bits; /* 0..128 */
};

/* -EINVAL: no address, or a prefix longer than it.  Bits beyond the prefix do not count. */
int cidr_parse(const char *text, struct cidr *ret_cidr);
/* One address without a prefix. */
int cidr_parse_address(const char *text, uint8_t ret_address[16]);
bool cidr_has(const struct cidr *cidr, const uint8_t address[16]);

#endif
