/* Numbers in memory that are computed with as REAL: define STORED, one of the four. */
#ifndef STORED_H
#define STORED_H

#include "lane.h"

#define STORED_REAL 0
#define STORED_FLOAT32 1
#define STORED_FLOAT16 2
#define STORED_BFLOAT16 3
#ifndef STORED
#define STORED STORED_REAL
#endif

#if STORED == STORED_FLOAT32
typedef float stored;
INLINE REAL widen(__global const stored *p, long i) { return p[i]; }
INLINE void round_to(__global stored *p, long i, REAL a) { p[i] = a; }
#elif STORED == STORED_FLOAT16
typedef half stored; /* to be loaded and stored, which takes no extension */
INLINE REAL widen(__global const stored *p, long i) { return vload_half(i, p); }
INLINE void round_to(__global stored *p, long i, REAL a) { vstore_half_rte((float)a, i, p); }
#elif STORED == STORED_BFLOAT16
typedef ushort stored; /* the upper half of a float */
INLINE REAL widen(__global const stored *p, long i) { return as_float((uint)p[i] << 16); }
INLINE void round_to(__global stored *p, long i, REAL a)
{
    const uint bits = as_uint((float)a);
    p[i] = (isnan(a) ? bits : bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
#else
typedef REAL stored;
INLINE REAL widen(__global const stored *p, long i) { return p[i]; }
#endif

/* The element of a pack at p[i]. */
INLINE lane stored_load(__global const stored *p, long i)
{
#if COMPLEX
    return (lane)(widen(p, i), widen(p, i + V));
#else
    return widen(p, i);
#endif
}

#ifdef ROUND_BLOCKS
/* target <- source, rounded; *overflow <- 1 if a number is larger than `limit` */
__kernel void round_blocks(long count, __global const REAL *restrict source, __global stored *restrict target,
                           REAL limit, __global long *overflow)
{
    const long i = get_global_id(0);
    if (i >= count) return;
    const REAL a = source[i];
    round_to(target, i, a);
    if (fabs(a) > limit) *overflow = 1;
}
#endif

#endif
