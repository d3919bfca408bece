/* Steps of matrix exponentials of packs, between products and solves: define HALVINGS, HALVED, COMBINED or CHOSEN.
 *
 * Matrices are n x n, views as in stacks.cl, of which the first nm lanes count. The method, and how often a matrix is
 * halved, are those of compactla/cpu/fused/expm.py.
 */
#ifndef CLA_EXPM_CL
#define CLA_EXPM_CL

#include "lane.h"

#define AT(P, p, i, j) (p##0 + cla_lane_place(q, p##ps) + (i) * p##rs + (j) * p##cs)
#define LOAD(P, p, i, j) cla_lane_load(P, AT(P, p, i, j))

#ifdef HALVINGS
#ifndef MISSING
#define MAXIMUM 1e38 /* the largest number, log2 of a factor, and how often matrices are halved at most */
#define MISSING -100
#define MOST 100
#endif
#define THETA ((CLA_REAL)4.25)
#define PLAIN ((CLA_REAL)5.3)

/* The largest sum of a column's |re| + |im|. */
#define NORM(result, P, p) \
    result = 0; \
    for (int j = 0; j < n; j++) { \
        CLA_REAL sum = 0; \
        for (int i = 0; i < n; i++) sum += cla_lane_abs1(LOAD(P, p, i, j)); \
        result = sum > result || isnan(sum) ? sum : result; \
    }

/* The least e with x < 2^e, and e / d from 0 on, rounded up. */
CLA_INLINE int cla_exponent(CLA_REAL x)
{
    int e;
    frexp(x, &e);
    return x > 0 ? e : -100000;
}
CLA_INLINE int cla_over(int e, int d) { return e > 0 ? (e + d - 1) / d : 0; }

/* s <- how often matrices are halved; 0 for such that are not finite. `room` has two columns. */
__kernel void halvings(long nm, long n, CLA_VIEW(const CLA_REAL *restrict A, a),
                       CLA_VIEW(const CLA_REAL *restrict B, b), CLA_VIEW(const CLA_REAL *restrict C, c),
                       CLA_VIEW(CLA_REAL *restrict room, r), __global int *restrict s)
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    CLA_REAL size, fourth, sixth;
    NORM(size, A, a)
    NORM(fourth, B, b)
    NORM(sixth, C, c)
    s[q] = 0;
    if (!(size < INFINITY)) return;
    const CLA_REAL theta2 = THETA * THETA, theta4 = theta2 * theta2;
    /* powers that overflow are not told from large ones */
    int found = max(cla_over(cla_exponent(min(fourth / theta4, (CLA_REAL)MAXIMUM)), 4),
                    cla_over(cla_exponent(min(sixth / (theta4 * theta2), (CLA_REAL)MAXIMUM)), 6));
    if (ldexp(size, -found) > PLAIN) {
        /* || |A| / 2^k ||^27, as of the first term that the approximant lacks */
        const int k = cla_exponent(size);
        CLA_REAL largest = 0;
        for (int i = 0; i < n; i++) cla_lane_store(room, AT(room, r, i, 0), cla_lane_real(1));
        for (int t = 0; t < 27; t++) {
            largest = 0;
            for (int j = 0; j < n; j++) {
                CLA_REAL sum = 0;
                for (int i = 0; i < n; i++)
                    sum += ldexp(cla_lane_abs1(LOAD(A, a, i, j)), -k) * cla_lane_re(LOAD(room, r, i, t % 2));
                cla_lane_store(room, AT(room, r, j, (t + 1) % 2), cla_lane_real(sum));
                largest = max(largest, sum);
            }
        }
        if (largest > 0) found += cla_over((k - found) * 26 + cla_exponent(largest) + MISSING, 26);
    }
    s[q] = min(found, MOST);
}
#endif

#ifdef HALVED
/* A, A^2, A^4 and A^6 <- those of A / 2^s */
__kernel void halved(long nm, long n, __global const int *restrict s, CLA_VIEW(CLA_REAL *restrict A, a),
                     CLA_VIEW(CLA_REAL *restrict B, b), CLA_VIEW(CLA_REAL *restrict C, c),
                     CLA_VIEW(CLA_REAL *restrict D, d))
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    const CLA_REAL first = ldexp((CLA_REAL)1, -s[q]), square = first * first, fourth = square * square;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            cla_lane_store(A, AT(A, a, i, j), LOAD(A, a, i, j) * first);
            cla_lane_store(B, AT(B, b, i, j), LOAD(B, b, i, j) * square);
            cla_lane_store(C, AT(C, c, i, j), LOAD(C, c, i, j) * fourth);
            cla_lane_store(D, AT(D, d, i, j), LOAD(D, d, i, j) * (fourth * square));
        }
}
#endif

#ifdef COMBINED
/* P <- own P + x A + y B + z C + one I; nothing is read of a matrix whose factor is zero */
__kernel void combined(long nm, long n, CLA_REAL own, CLA_REAL x, CLA_REAL y, CLA_REAL z, CLA_REAL one,
                       CLA_VIEW(const CLA_REAL *A, a), CLA_VIEW(const CLA_REAL *B, b), CLA_VIEW(const CLA_REAL *C, c),
                       CLA_VIEW(CLA_REAL *P, p))
{
    const long q = get_global_id(0);
    if (q >= nm) return;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            cla_lane sum = cla_lane_real(i == j ? one : 0);
            if (own != 0) sum += LOAD(P, p, i, j) * own;
            if (x != 0) sum += LOAD(A, a, i, j) * x;
            if (y != 0) sum += LOAD(B, b, i, j) * y;
            if (z != 0) sum += LOAD(C, c, i, j) * z;
            cla_lane_store(P, AT(P, p, i, j), sum);
        }
}
#endif

#ifdef CHOSEN
/* P <- S, of m x n, where s is above t */
__kernel void chosen(long nm, long m, long n, long t, __global const int *restrict s,
                     CLA_VIEW(const CLA_REAL *restrict S, a), CLA_VIEW(CLA_REAL *restrict P, p))
{
    const long q = get_global_id(0);
    if (q >= nm || s[q] <= t) return;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) cla_lane_store(P, AT(P, p, i, j), LOAD(S, a, i, j));
}
#endif

#undef AT
#undef LOAD
#endif
