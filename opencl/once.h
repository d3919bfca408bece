/* Loads and stores of what is not needed again: NVIDIA's GPUs leave room in caches for what is. */
#ifndef CLA_ONCE_H
#define CLA_ONCE_H

#include "lane.h"

#if defined(__CUDACC__) || defined(__NV_CL_C_VERSION)
CLA_INLINE CLA_REAL cla_load_once(__global const CLA_REAL *p)
{
    if (sizeof(CLA_REAL) == 4) {
        float x;
        asm volatile("ld.global.cs.f32 %0, [%1];" : "=f"(x) : "l"(p) : "memory");
        return x;
    }
    double x;
    asm volatile("ld.global.cs.f64 %0, [%1];" : "=d"(x) : "l"(p) : "memory");
    return x;
}
CLA_INLINE void cla_store_once(__global CLA_REAL *p, CLA_REAL x)
{
    if (sizeof(CLA_REAL) == 4) asm volatile("st.global.cs.f32 [%0], %1;" :: "l"(p), "f"((float)x) : "memory");
    else asm volatile("st.global.cs.f64 [%0], %1;" :: "l"(p), "d"((double)x) : "memory");
}
#else
CLA_INLINE CLA_REAL cla_load_once(__global const CLA_REAL *p) { return *p; }
CLA_INLINE void cla_store_once(__global CLA_REAL *p, CLA_REAL x) { *p = x; }
#endif

#endif
