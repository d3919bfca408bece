/* Copies of elements to local memory that go on by themselves, until they are waited for.
 *
 * NVIDIA's GPUs have them from compute capability 8.0 on; earlier ones refuse what has this. On other devices they are
 * done at once.
 */
#ifndef CLA_COPIES_H
#define CLA_COPIES_H

#include "lane.h"

#if defined(__CUDACC__) || defined(__NV_CL_C_VERSION)

/* Where a pointer points within local memory */
#ifdef __CUDACC__
#define CLA_LOCAL_ADDRESS(p) ((uint)__cvta_generic_to_shared(p))
#else
#define CLA_LOCAL_ADDRESS(p) ((uint)(size_t)(p))
#endif

#define CLA_BYTES_float "4"
#define CLA_BYTES_double "8"
CLA_INLINE void cla_copy_number(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], " CLA_PASTE(CLA_BYTES_, CLA_REAL) ";"
                 : : "r"(CLA_LOCAL_ADDRESS(to)), "l"((size_t)from));
}
/* Wait for all copies of this work-item. */
CLA_INLINE void cla_copies_wait(void) { asm volatile("cp.async.wait_all;" : : : "memory"); }

#else

CLA_INLINE void cla_copy_number(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from) { *to = *from; }
CLA_INLINE void cla_copies_wait(void) {}

#endif

/* The element that cla_lane_load_of loads, or zero if it is not `within`. */
CLA_INLINE void cla_copy_of(CLA_LOCAL cla_lane *to, int within, int common, __global const CLA_REAL *p, int l, long i)
{
    if (!within) {
        *to = cla_lane_real(0);
        return;
    }
    p += common ? i : l + i;
    cla_copy_number((CLA_LOCAL CLA_REAL *)to, p);
#if CLA_COMPLEX
    cla_copy_number((CLA_LOCAL CLA_REAL *)to + 1, p + (common ? 1 : CLA_VLEN));
#endif
}

#endif
