/* SPDX-License-Identifier: MIT
 *
 * Address ranges.
 */
#include "base/cidr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

enum { V4_BITS = 32, V6_BITS = 128, TEXT_BYTES = 64 };

/* The number of bits of the address's kind, or -EINVAL. */
static int address_parse(const char *text, uint8_t ret_address[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		memcpy(ret_address, mapped, sizeof mapped);
		memcpy(ret_address + sizeof mapped, v4, sizeof v4);
		return V4_BITS;
	}
	return inet_pton(AF_INET6, text, ret_address) == 1 ? V6_BITS : -EINVAL;
}

int cidr_parse_address(const char *text, uint8_t ret_address[16])
{
	uint8_t address[16];

	if (address_parse(text, address) < 0)
		return -EINVAL;
	memcpy(ret_address, address, sizeof address);
	return 0;
}

int cidr_parse(const char *text, struct cidr *ret_cidr)
{
	const char *slash = strchr(text, '/');
	size_t size = slash ? (size_t)(slash - text) : strlen(text);
	struct cidr cidr;
	char host[TEXT_BYTES];
	unsigned prefix = 0;
	int bits;

	if (size >= sizeof host)
		return -EINVAL;
	memcpy(host, text, size);
	host[size] = '\0';
	bits = address_parse(host, cidr.address);
	if (bits < 0)
		return -EINVAL;
	if (!slash)
		prefix = (unsigned)bits;
	else if (slash[1] == '\0' || strlen(slash + 1) > 3)
		return -EINVAL;
	for (const char *at = slash ? slash + 1 : ""; *at; at++) {
		if (*at < '0' || *at > '9')
			return -EINVAL;
		prefix = prefix * 10 + (unsigned)(*at - '0');
	}
	if (prefix > (unsigned)bits)
		return -EINVAL;
	cidr.prefix_bits = prefix + (unsigned)(V6_BITS - bits);
	*ret_cidr = cidr;
	return 0;
}

bool cidr_has(const struct cidr *cidr, const uint8_t address[16])
{
	unsigned bytes = cidr->prefix_bits / 8, rest = cidr->prefix_bits % 8;

	if (memcmp(cidr->address, address, bytes) != 0)
		return false;
	return rest == 0 || (cidr->address[bytes] ^ address[bytes]) >> (8 - rest) == 0;
}
