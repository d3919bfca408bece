/* Copies of whole runs of memory to local memory, which one work-item begins and the others wait for.
 *
 * NVIDIA's GPUs make them so from compute capability 9.0 on, by an engine of its own; compilers for others of NVIDIA's
 * refuse this, and on what is not NVIDIA's copies are there at once. A `cla_arrivals` in local memory counts the bytes
 * of a round of copies. The work-item that begins them makes it ready, once, and before a barrier; says how many bytes
 * come; and begins the copies of them. All wait for round 0, 1, 2, ..., and see what was copied after a barrier behind
 * that. Addresses and numbers of bytes are multiples of 16.
 */
#ifndef CLA_BULK_COPY_H
#define CLA_BULK_COPY_H

#include "async_copy.h"

typedef ulong cla_arrivals;

#if defined(__CUDACC__) || defined(__NV_CL_C_VERSION)
CLA_INLINE void cla_arrivals_ready(CLA_LOCAL cla_arrivals *arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(CLA_LOCAL_ADDRESS(arrivals)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
CLA_INLINE void cla_arrivals_expect(CLA_LOCAL cla_arrivals *arrivals, uint bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(CLA_LOCAL_ADDRESS(arrivals)), "r"(bytes) : "memory");
}
CLA_INLINE void cla_arrivals_wait(CLA_LOCAL cla_arrivals *arrivals, int round)
{
    uint done = 0;
    while (!done)
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(CLA_LOCAL_ADDRESS(arrivals)), "r"(round & 1) : "memory");
}
CLA_INLINE void cla_bulk_copy(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from, uint bytes,
                              CLA_LOCAL cla_arrivals *arrivals)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(CLA_LOCAL_ADDRESS(to)), "l"(from), "r"(bytes), "r"(CLA_LOCAL_ADDRESS(arrivals)) : "memory");
}
#else
CLA_INLINE void cla_arrivals_ready(CLA_LOCAL cla_arrivals *arrivals) {}
CLA_INLINE void cla_arrivals_expect(CLA_LOCAL cla_arrivals *arrivals, uint bytes) {}
CLA_INLINE void cla_arrivals_wait(CLA_LOCAL cla_arrivals *arrivals, int round) {}
CLA_INLINE void cla_bulk_copy(CLA_LOCAL CLA_REAL *to, __global const CLA_REAL *from, uint bytes,
                              CLA_LOCAL cla_arrivals *arrivals)
{
    for (uint i = 0; i < bytes / sizeof(CLA_REAL); i++) to[i] = from[i];
}
#endif

#endif
