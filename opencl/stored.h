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

/* `stored` is what is in memory, and in registers until it is needed, as `stored_lane`. */
#if STORED == STORED_FLOAT32
typedef float stored;
#define STORED_LANE2 float2
INLINE REAL widen(stored a) { return a; }
INLINE void round_to(__global stored *p, long i, REAL a) { p[i] = a; }
#elif STORED == STORED_FLOAT16
typedef ushort stored; /* a half, which takes an extension to be computed with, but none to be converted */
#define STORED_LANE2 ushort2
INLINE REAL widen(stored a) { return vload_half(0, (const half *)&a); }
INLINE void round_to(__global stored *p, long i, REAL a) { vstore_half_rte((float)a, i, (__global half *)p); }
#elif STORED == STORED_BFLOAT16
typedef ushort stored; /* the upper half of a float */
#define STORED_LANE2 ushort2
INLINE REAL widen(stored a) { return as_float((uint)a << 16); }
INLINE void round_to(__global stored *p, long i, REAL a)
{
    const uint bits = as_uint((float)a);
    p[i] = (isnan(a) ? bits : bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
#else
typedef REAL stored;
#define STORED_LANE2 PASTE(REAL, 2)
INLINE REAL widen(stored a) { return a; }
#endif

/* The element of a pack at p[i], and its value. */
#if COMPLEX
typedef STORED_LANE2 stored_lane;
INLINE stored_lane stored_load(__global const stored *p, long i) { return (stored_lane)(p[i], p[i + V]); }
INLINE lane widened(stored_lane a) { return (lane)(widen(a.x), widen(a.y)); }
#else
typedef stored stored_lane;
INLINE stored_lane stored_load(__global const stored *p, long i) { return p[i]; }
INLINE lane widened(stored_lane a) { return widen(a); }
#endif

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
