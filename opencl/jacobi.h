/* Jacobi's method for eigenvalues of Hermitian matrices; its sweeps and how matrices are scaled serve singular values
 * too.
 *
 * A rotation makes two columns p and q of a matrix orthogonal, or the element (p, q) of a Hermitian one zero. It is made
 * of three numbers either way: the two of the diagonal, of A or of G^H G, and the one between them. The numbers are so
 * scaled that their squares do not overflow.
 */
#ifndef CLA_JACOBI_H
#define CLA_JACOBI_H

#include "lane.h"

#define CLA_SWEEPS 40 /* more than any matrix needs: 5 to 12 are usual */

/* What a rounded number is off by at most, relatively. */
#define CLA_ROUNDING (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-53 : (CLA_REAL)0x1p-24)

/* The rotation as shears: x - conj(shear) y, then y + sine x, then the first again. The error of each is relative to the
 * angle, and cos^2 + sin^2 = 1 is a matter of course. */
typedef struct {
    cla_lane tangent, sine, shear;
} cla_rotation;

/* |a|^2 and the real part of conj(a) b */
CLA_INLINE CLA_REAL cla_squared(cla_lane a)
{
    return fma(cla_lane_im(a), cla_lane_im(a), cla_lane_re(a) * cla_lane_re(a));
}
CLA_INLINE CLA_REAL cla_inner(cla_lane a, cla_lane b)
{
    return fma(cla_lane_im(a), cla_lane_im(b), cla_lane_re(a) * cla_lane_re(b));
}

/* Whether |between| > tolerance sqrt(|p q|): for small elements as for large ones, which keeps their digits. */
CLA_INLINE int cla_matters(CLA_REAL p, CLA_REAL q, cla_lane between, CLA_REAL tolerance)
{
    return cla_squared(between) > fabs(p * q) * (tolerance * tolerance);
}

CLA_INLINE cla_rotation cla_rotation_of(CLA_REAL p, CLA_REAL q, cla_lane between)
{
    const cla_lane twice = between + between;
    const CLA_REAL difference = q - p;
    const CLA_REAL root = sqrt(fma(difference, difference, cla_squared(twice)));
    cla_rotation r;
    r.tangent = twice * (1 / (difference + copysign(root, difference)));
    const CLA_REAL cosine = cla_lane_rsqrt(1 + cla_squared(r.tangent));
    r.sine = r.tangent * cosine;
    r.shear = r.sine * (1 / (1 + cosine));
    return r;
}

/* Turn elements of columns p and q. */
CLA_INLINE void cla_turn(cla_rotation r, cla_lane *x, cla_lane *y)
{
    const cla_lane back = cla_lane_conj(r.shear);
    *x = cla_lane_fnma(back, *y, *x);
    *y = cla_lane_fma(r.sine, *x, *y);
    *x = cla_lane_fnma(back, *y, *x);
}

/* The larger of `largest` and the parts of a; NaN where one is. */
CLA_INLINE CLA_REAL cla_larger(CLA_REAL largest, cla_lane a)
{
    largest = cla_lane_maximum(largest, fabs(cla_lane_re(a)));
    return CLA_COMPLEX ? cla_lane_maximum(largest, fabs(cla_lane_im(a))) : largest;
}

/* The power of two that makes numbers, of which the largest is given, about as large as 2^exponent; it is that of two
 * factors, since one alone may overflow. */
CLA_INLINE int cla_power(CLA_REAL largest, int exponent) { return exponent - (largest > 0 ? ilogb(largest) : 0); }
CLA_INLINE cla_lane cla_scaled(cla_lane a, int power)
{
    const int part = power / 2;
    const CLA_REAL first = ldexp((CLA_REAL)1, part), second = ldexp((CLA_REAL)1, power - part);
    return a * first * second;
}

/* |g_p|^2, |g_q|^2 and g_p^H g_q, of two columns of m rows. */
CLA_INLINE void cla_angle(cla_matrix G, int m, int p, int q, CLA_REAL *pp, CLA_REAL *qq, cla_lane *pq)
{
    *pp = *qq = 0;
    *pq = cla_lane_real(0);
    for (int i = 0; i < m; i++) {
        const cla_lane x = cla_get(G, i, p), y = cla_get(G, i, q);
        *pp += cla_squared(x);
        *qq += cla_squared(y);
        *pq = cla_lane_fma(cla_lane_conj(x), y, *pq);
    }
}

CLA_INLINE void cla_turn_columns(cla_rotation r, cla_matrix G, int m, int p, int q)
{
    for (int i = 0; i < m; i++) {
        cla_lane x = cla_get(G, i, p), y = cla_get(G, i, q);
        cla_turn(r, &x, &y);
        cla_set(G, i, p, x);
        cla_set(G, i, q, y);
    }
}

/* Pair k of round r of all pairs of 0 to n - 1, in rounds of pairs that share nothing, as in a tournament: there are
 * CLA_ROUNDS(n) rounds of CLA_PAIRS(n) pairs. */
#define CLA_ROUNDS(n) ((n) - 1 + (n) % 2)
#define CLA_PAIRS(n) ((n) / 2)
CLA_INLINE void cla_pair(int n, int r, int k, int *p, int *q)
{
    const int odd = CLA_ROUNDS(n), distance = k + n % 2;
    const int a = (r + distance) % odd, b = distance ? (r - distance + odd) % odd : odd;
    *p = min(a, b);
    *q = max(a, b);
}

/* One-sided Jacobi: turn the columns of G, m x n, until they are orthogonal. The squares of squares of its elements do
 * not overflow. Returns 0, or 1 if some are not. */
CLA_INLINE int cla_orthogonalize(int m, int n, cla_matrix G)
{
    const CLA_REAL tolerance = sqrt((CLA_REAL)m) * 2 * CLA_ROUNDING;
    int again = n > 1;
    for (int sweep = 0; again && sweep < CLA_SWEEPS; sweep++) {
        again = 0;
        for (int r = 0; r < CLA_ROUNDS(n); r++) {
            for (int k = 0; k < CLA_PAIRS(n); k++) {
                int p, q;
                CLA_REAL pp, qq;
                cla_lane pq;
                cla_pair(n, r, k, &p, &q);
                cla_angle(G, m, p, q, &pp, &qq, &pq);
                if (cla_matters(pp, qq, pq, tolerance)) {
                    cla_turn_columns(cla_rotation_of(pp, qq, pq), G, m, p, q);
                    again = 1;
                }
            }
        }
    }
    return again;
}

#endif
