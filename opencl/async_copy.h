/* Copies to local memory that the work-item which begins them need not wait for at once.
 *
 * NVIDIA's GPUs make them so from compute capability 8.0 on; of others compilers for NVIDIA's refuse this, and copies
 * are there at once on what is not NVIDIA's. What a work-item copied it sees after cla_copies_wait, or but for what it
 * committed the last n times after CLA_COPIES_WAIT_BUT(n), and those of its work-group after a barrier behind that.
 * Define CLA_ASYNC, 0 for copies that are there at once everywhere.
 */
#ifndef CLA_ASYNC_COPY_H
#define CLA_ASYNC_COPY_H

#include "lane.h"

#ifndef CLA_ASYNC
#define CLA_ASYNC 1
#endif

#ifdef __CUDACC__
#define CLA_LOCAL_ADDRESS(p) ((uint)__cvta_generic_to_shared(p))
#else
#define CLA_LOCAL_ADDRESS(p) ((uint)(size_t)(p))
#endif

#if CLA_ASYNC && (defined(__CUDACC__) || defined(__NV_CL_C_VERSION))
#define CLA_COPY(how, bytes) \
    asm volatile("cp.async." how ".shared.global [%0], [%1], %2;" \
                 :: "r"(CLA_LOCAL_ADDRESS(to)), "l"(from), "n"(bytes) : "memory")
CLA_INLINE void cla_copy_number(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from)
{
    CLA_COPY("ca", sizeof(CLA_REAL));
}
/* n neighbours, which are 4, 8 or 16 bytes and begin at a multiple of that */
CLA_INLINE void cla_copy_numbers(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from, int n)
{
    if (n == 1) cla_copy_number(to, from);
    else if (n * sizeof(CLA_REAL) == 8) CLA_COPY("ca", 8);
    else CLA_COPY("cg", 16);
}
CLA_INLINE void cla_copies_wait(void) { asm volatile("cp.async.wait_all;" ::: "memory"); }
CLA_INLINE void cla_copies_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define CLA_COPIES_WAIT_BUT(n) asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory")
#else
CLA_INLINE void cla_copy_number(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from) { *to = *from; }
CLA_INLINE void cla_copy_numbers(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from, int n)
{
    if (n == 2) *(CLA_LOCAL CLA_PASTE(CLA_REAL, 2) *)to = *(__global const CLA_PASTE(CLA_REAL, 2) *)from;
    else if (n == 4) *(CLA_LOCAL CLA_PASTE(CLA_REAL, 4) *)to = *(__global const CLA_PASTE(CLA_REAL, 4) *)from;
    else *to = *from;
}
CLA_INLINE void cla_copies_wait(void) {}
CLA_INLINE void cla_copies_commit(void) {}
#define CLA_COPIES_WAIT_BUT(n)
#endif

/* *to <- the element at p[i], its imaginary part im further, or that of a pack, or what cla_lane_load_of loads */
CLA_INLINE void cla_copy_apart(CLA_LOCAL cla_lane *to, __global const CLA_REAL *p, long i, long im)
{
    CLA_LOCAL CLA_REAL *numbers = (CLA_LOCAL CLA_REAL *)to;
    cla_copy_number(numbers, p + i);
    if (CLA_COMPLEX) cla_copy_number(numbers + 1, p + i + im);
}
CLA_INLINE void cla_copy_begin(CLA_LOCAL cla_lane *to, __global const CLA_REAL *p, long i)
{
    cla_copy_apart(to, p, i, CLA_VLEN);
}
CLA_INLINE void cla_copy_of(CLA_LOCAL cla_lane *to, int common, __global const CLA_REAL *p, int l, long i)
{
    if (common) cla_copy_apart(to, p, i, 1);
    else cla_copy_begin(to, p, l + i);
}

#endif
