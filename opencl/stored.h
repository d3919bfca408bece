/* Numbers in memory that are computed with as CLA_REAL: define CLA_STORED, one of the four. */
#ifndef CLA_STORED_H
#define CLA_STORED_H

#include "lane.h"

#define CLA_STORED_REAL 0
#define CLA_STORED_FLOAT32 1
#define CLA_STORED_FLOAT16 2
#define CLA_STORED_BFLOAT16 3
#ifndef CLA_STORED
#define CLA_STORED CLA_STORED_REAL
#endif

/* `cla_stored` is what is in memory, and in registers until it is needed, as `cla_stored_lane`. */
#if CLA_STORED == CLA_STORED_FLOAT32
typedef float cla_stored;
#define STORED_LANE2 float2
CLA_INLINE CLA_REAL cla_widen(cla_stored a) { return a; }
CLA_INLINE void cla_round_to(__global cla_stored *p, long i, CLA_REAL a) { p[i] = a; }
#elif CLA_STORED == CLA_STORED_FLOAT16
typedef ushort cla_stored; /* a half, which takes an extension to be computed with, but none to be converted */
#define STORED_LANE2 ushort2
CLA_INLINE CLA_REAL cla_widen(cla_stored a) { return vload_half(0, (const half *)&a); }
CLA_INLINE void cla_round_to(__global cla_stored *p, long i, CLA_REAL a)
{
    vstore_half_rte((float)a, i, (__global half *)p);
}
#elif CLA_STORED == CLA_STORED_BFLOAT16
typedef ushort cla_stored; /* the upper half of a float */
#define STORED_LANE2 ushort2
CLA_INLINE CLA_REAL cla_widen(cla_stored a) { return as_float((uint)a << 16); }
CLA_INLINE void cla_round_to(__global cla_stored *p, long i, CLA_REAL a)
{
    const uint bits = as_uint((float)a);
    p[i] = (isnan(a) ? bits : bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
#else
typedef CLA_REAL cla_stored;
#define STORED_LANE2 CLA_PASTE(CLA_REAL, 2)
CLA_INLINE CLA_REAL cla_widen(cla_stored a) { return a; }
CLA_INLINE void cla_round_to(__global cla_stored *p, long i, CLA_REAL a) { p[i] = a; }
#endif

/* The element of a pack at p[i], and its value. */
#if CLA_COMPLEX
typedef STORED_LANE2 cla_stored_lane;
CLA_INLINE cla_stored_lane cla_stored_of(cla_stored re, cla_stored im)
{
    cla_stored_lane a;
    a.x = re;
    a.y = im;
    return a;
}
CLA_INLINE cla_stored_lane cla_stored_load(__global const cla_stored *p, long i)
{
    return cla_stored_of(p[i], p[i + CLA_VLEN]);
}
CLA_INLINE cla_lane cla_widened(cla_stored_lane a) { return cla_lane_of(cla_widen(a.x), cla_widen(a.y)); }
#else
typedef cla_stored cla_stored_lane;
CLA_INLINE cla_stored_lane cla_stored_of(cla_stored re, cla_stored im) { return re; }
CLA_INLINE cla_stored_lane cla_stored_load(__global const cla_stored *p, long i) { return p[i]; }
CLA_INLINE cla_lane cla_widened(cla_stored_lane a) { return cla_widen(a); }
#endif

#undef STORED_LANE2

#endif
