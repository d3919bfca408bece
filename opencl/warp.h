/* What the work-items of a warp do together, on NVIDIA's GPUs: define CLA_WARP, 0 for any other device; 2 has what GPUs of
 * compute capability 8.0 or more have.
 *
 * Teams are parts of warps, of so many neighbours, a power of 2, or CLA_WARPS of them, which are whole work-groups then.
 * Members of a warp run in step, and all of a warp come here.
 */
#ifndef CLA_WARP_H
#define CLA_WARP_H

#include "unroll.h"

#ifndef CLA_WARP
#define CLA_WARP 0
#endif
#ifndef CLA_WARPS
#define CLA_WARPS 1
#endif

/* What members have written to local memory before it, others see after it. */
#if CLA_WARP && CLA_WARPS == 1
#define CLA_TOGETHER asm volatile("bar.warp.sync -1;" ::: "memory");
#else
#define CLA_TOGETHER barrier(CLK_LOCAL_MEM_FENCE);
#endif

#if CLA_WARP
/* Functions that return x of another work-item of a warp, by one of the ways of shfl.sync */
#define CLA_SHUFFLE_AS(type, way, y, x, which) \
    asm volatile("shfl.sync." way ".b32 %0, %1, %2, 31, -1;" : "=" type(y) : type(x), "r"(which))
#define CLA_SHUFFLE(way, of_int, of_real) \
    CLA_INLINE int of_int(int x, int which) \
    { \
        int y; \
        CLA_SHUFFLE_AS("r", way, y, x, which); \
        return y; \
    } \
    CLA_INLINE CLA_REAL of_real(CLA_REAL x, int which) \
    { \
        int low, high; \
        if (sizeof(CLA_REAL) == 4) { \
            float y; \
            CLA_SHUFFLE_AS("f", way, y, (float)x, which); \
            return y; \
        } \
        asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "d"((double)x)); \
        low = of_int(low, which); \
        high = of_int(high, which); \
        double y; \
        asm("mov.b64 %0, {%1, %2};" : "=d"(y) : "r"(low), "r"(high)); \
        return y; \
    }
CLA_SHUFFLE("bfly", cla_other_int, cla_other) /* whose number differs by the bits of a distance */
CLA_SHUFFLE("idx", cla_taken_int, cla_taken_real) /* which has this number */
CLA_INLINE cla_lane cla_taken(cla_lane x, int lane)
{
#if CLA_COMPLEX
    return cla_lane_of(cla_taken_real(x.x, lane), cla_taken_real(x.y, lane));
#else
    return cla_taken_real(x, lane);
#endif
}
#endif

#if CLA_WARP == 2
/* The largest x of a warp, and the work-items of it where x is not 0, as bits. */
CLA_INLINE int cla_most(int x)
{
    int y;
    asm volatile("redux.sync.max.s32 %0, %1, -1;" : "=r"(y) : "r"(x));
    return y;
}
CLA_INLINE uint cla_which(int x)
{
    uint y;
    asm volatile("{.reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, -1;}" : "=r"(y) : "r"(x));
    return y;
}

/* The largest x of the `members` of this team: of few, by distances, as a redux takes longer. */
CLA_INLINE int cla_most_of(int members, int x)
{
    int y = x;
    if (members >= 32) return cla_most(x);
    if (members <= 8) {
        CLA_UNROLL for (int distance = 1; distance < members; distance *= 2) y = max(y, cla_other_int(y, distance));
        return y;
    }
    const int team = get_local_id(0) % 32 / members;
    CLA_UNROLL for (int other = 0; other < 32 / members; other++) {
        const int most = cla_most(team == other ? x : INT_MIN);
        y = team == other ? most : y;
    }
    return y;
}
/* Members of this team, as bits of a warp, and the number of the first bit, and of the last. */
CLA_INLINE uint cla_team(int members)
{
    return members >= 32 ? ~0u : ((1u << members) - 1) << get_local_id(0) % 32 / members * members;
}
CLA_INLINE int cla_first_of(uint which)
{
    int first;
    asm("{.reg .b32 m; brev.b32 m, %1; bfind.shiftamt.u32 %0, m;}" : "=r"(first) : "r"(which));
    return first;
}
CLA_INLINE int cla_last_of(uint which)
{
    int last;
    asm("bfind.u32 %0, %1;" : "=r"(last) : "r"(which));
    return last;
}
/* The number near 1 / x, of real numbers where that is neither too large nor too small. */
#if CLA_COMPLEX
#define CLA_NEAR_RECIPROCAL(x) (x)
#else
#define CLA_NEAR_RECIPROCAL(x) cla_near_reciprocal(x)
#endif
CLA_INLINE CLA_REAL cla_near_reciprocal(CLA_REAL x)
{
    if (sizeof(CLA_REAL) == 4) {
        float y;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"((float)x));
        return y;
    }
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"((double)x));
    const double error = fma(-(double)x, y, 1.0);
    return fma(y, fma(error, error, error), y);
}
/* The halves of a number's bits; floats have nothing in the low one. */
CLA_INLINE int cla_high(CLA_REAL x)
{
    int high, low;
    if (sizeof(CLA_REAL) == 4) asm("mov.b32 %0, %1;" : "=r"(high) : "f"((float)x));
    else asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "d"((double)x));
    return high;
}
CLA_INLINE int cla_low(CLA_REAL x)
{
    int high, low = 0;
    if (sizeof(CLA_REAL) == 8) asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "d"((double)x));
    return low;
}

/* The work-item in the warp that has the largest size of those of its team, of which it has `members`, and of equals the
 * one at the first place. Sizes are not negative, or -1. */
CLA_INLINE int cla_place_of_largest(int members, CLA_REAL size, int place)
{
    const int high = cla_high(size);
    const uint all = cla_team(members);
    int largest = high == cla_most_of(members, high), most;
    uint which = cla_which(largest) & all;
    if (cla_which((which & (which - 1)) != 0)) { /* in the whole warp: there is nothing that only some come to */
        if (sizeof(CLA_REAL) == 8) {
            const int low = cla_low(size) ^ INT_MIN; /* in the order of numbers without sign */
            most = cla_most_of(members, largest ? low : INT_MIN);
            largest &= low == most;
        }
        most = cla_most_of(members, largest ? -place : INT_MIN);
        largest &= -place == most;
        which = cla_which(largest) & all;
    }
    return cla_first_of(which);
}
#endif

#endif
