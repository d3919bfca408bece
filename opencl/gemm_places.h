/* Where matrices of ordinary arrays are for gemm: C <- alpha op(A) op(B) + beta C, for stacks of any strides, which count
 * CLA_REAL.
 *
 * Strides are those of op(A) and op(B), which ACONJ and BCONJ, 1, conjugate. Matrix q begins at A[a0 + q * astep], or
 * for PLACES, 1, at A[places[q]], B[places[nm + q]] and C[places[2 * nm + q]]. C is not read where beta is 0.
 */
#include "unroll.h"

#ifndef PLACES
#define PLACES 0
#endif
#if PLACES
#define CLA_PLACES_ARGUMENT , __global const long *restrict places
#define CLA_BEGIN(turn, start, q, step) places[(turn) * nm + (q)]
#else
#define CLA_PLACES_ARGUMENT
#define CLA_BEGIN(turn, start, q, step) (start + (q) * (step))
#endif
#if CLA_COMPLEX
#define CLA_CONJUGATED(flag, x) ((flag) ? cla_lane_conj(x) : (x))
#else
#define CLA_CONJUGATED(flag, x) (x)
#endif

/* x + beta c, where a real beta touches no part with the other's infinity */
CLA_INLINE cla_lane cla_added(cla_lane x, cla_lane beta, cla_lane c)
{
#if CLA_COMPLEX
    if (beta.y == 0) return cla_lane_of(fma(beta.x, c.x, x.x), fma(beta.x, c.y, x.y));
#endif
    return cla_lane_fma(beta, c, x);
}
