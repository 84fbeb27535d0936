/* SPDX-License-Identifier: MIT
 *
 * To be called after every call of ISA-L.  Its 2.30 leaves the upper halves of the vector registers
 * dirty, after which each mixture of SSE and AVX code stalls the processor: with digests 12 % of
 * the target's time went to the one instruction that came after the call.
 */
#ifndef SANLAB_BASE_SIMD_H
#define SANLAB_BASE_SIMD_H

static inline void simd_done(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "memory");
#endif
}

#endif
