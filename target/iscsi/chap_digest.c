/* SPDX-License-Identifier: MIT
 *
 * The digests of CHAP, by libgcrypt.
 */
#include <errno.h>
#include <gcrypt.h>
#include <string.h>

#include "target/iscsi/chap.h"

static const struct {
	int algorithm, gcrypt;
	size_t bytes;
} digests[] = {
    {CHAP_MD5, GCRY_MD_MD5, 16},
    {CHAP_SHA1, GCRY_MD_SHA1, 20},
    {CHAP_SHA256, GCRY_MD_SHA256, 32},
    {CHAP_SHA3_256, GCRY_MD_SHA3_256, 32},
};

static void library_init(void)
{
	if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
		return;
	gcry_check_version(NULL);
	/* Secrets are in a file of ours anyway: no locked memory, which may need privileges. */
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

static size_t row_of(int algorithm)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(digests) && digests[i].algorithm != algorithm)
		i++;
	return i;
}

size_t chap_digest_bytes(int algorithm)
{
	size_t row = row_of(algorithm);

	return row < ARRAY_SIZE(digests) ? digests[row].bytes : 0;
}

int chap_digest(int algorithm, uint8_t id, const struct chap_secret *secret,
		const uint8_t *challenge, size_t challenge_bytes,
		uint8_t out[CHAP_DIGEST_MAX_BYTES])
{
	size_t row = row_of(algorithm);
	gcry_md_hd_t md;

	if (row == ARRAY_SIZE(digests))
		return -ENOTSUP;
	library_init();
	if (gcry_md_open(&md, digests[row].gcrypt, 0))
		return -ENOTSUP; /* a system policy may forbid MD5 */
	gcry_md_write(md, &id, 1);
	gcry_md_write(md, secret->bytes, secret->size);
	gcry_md_write(md, challenge, challenge_bytes);
	memcpy(out, gcry_md_read(md, digests[row].gcrypt), digests[row].bytes);
	gcry_md_close(md);
	return 0;
}
