/* How many singular values of a bidiagonal matrix are below a number: that of negative pivots of B^H B - x^2, by
 * differential stationary qd transformations, as if each element of B were off by some roundings.
 */
#include "warp.h"

#define CLA_LEAST_PIVOT (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-960 : (CLA_REAL)0x1p-84f)

/* Of B with squares of its diagonal and, from number n on, of what is beside it, about 1 at most */
CLA_INLINE int cla_below(int n, CLA_LOCAL const CLA_REAL *squares, CLA_REAL x)
{
    const CLA_REAL shift = CLA_MINUS(x * x);
    CLA_REAL rest = shift;
    int below = 0;
    _Pragma("unroll 4") for (int k = 0; k < n; k++) {
        CLA_REAL pivot = squares[k] + rest;
        if (fabs(pivot) < CLA_LEAST_PIVOT) pivot = CLA_MINUS(CLA_LEAST_PIVOT);
        below += pivot < 0;
#if CLA_WARP == 2
        rest = fma(rest * cla_near_reciprocal(pivot), squares[n + k], shift);
#else
        rest = fma(rest / pivot, squares[n + k], shift);
#endif
    }
    return below;
}
