/* chud: A <- the factor of L L^H + X X^H, or of L L^H - X X^H, from L = A, for one lane (pack level) and for a batch
 * (define CHUD_BATCH).
 *
 * A is n x n, and its lower triangle all that is read and written; imaginary parts on its diagonal count as 0 and
 * become 0. An upper triangle is the lower one of the conjugated transposed matrix. X is n x r, and overwritten.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item updates one lane.
 */
#ifndef CLA_CHUD_CL
#define CLA_CHUD_CL

#include "unroll.h"

/* What makes [pivot, 0] of [l, x]: a rotation by these, or a hyperbolic one, with secant = 1 / cosine. */
typedef struct {
    CLA_REAL cosine, secant;
    cla_lane sine;
} cla_chud_plane;

#define CLA_SQUARES(x) (cla_lane_re(x) * cla_lane_re(x) + cla_lane_im(x) * cla_lane_im(x))

/* A power of two that brings l and x, of which `size` is as large as the largest, to where squares are right. */
CLA_INLINE CLA_REAL cla_chud_scale(CLA_REAL size)
{
    const CLA_REAL limit = sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p+300 : (CLA_REAL)0x1p+40;
    return size > limit ? 1 / limit / limit : size < 1 / limit ? limit * limit : 1;
}

/* l <- the pivot of the rotation that it returns. */
CLA_INLINE cla_chud_plane cla_givens(CLA_REAL *l, cla_lane x)
{
    const CLA_REAL scale = cla_chud_scale(max(fabs(*l), cla_lane_abs1(x))), a = *l * scale;
    const cla_lane b = x * scale;
    const CLA_REAL squares = a * a + CLA_SQUARES(b);
    const int none = squares == 0;
    const CLA_REAL inverse = cla_lane_rsqrt(none ? 1 : squares);
    cla_chud_plane t;
    *l = squares * inverse / scale;
    t.cosine = none ? 1 : a * inverse;
    t.secant = 1;
    t.sine = b * inverse;
    return t;
}

/* l <- the pivot of the hyperbolic rotation that it returns; NaN if there is none. */
CLA_INLINE cla_chud_plane cla_hyperbolic(CLA_REAL *l, cla_lane x)
{
    const CLA_REAL scale = cla_chud_scale(fabs(*l)), a = *l * scale, over = 1 / a;
    const cla_lane b = x * scale;
    const CLA_REAL re = cla_lane_re(b), im = cla_lane_im(b), rest = (a - re) * (a + re) - im * im;
    const CLA_REAL inverse = cla_lane_rsqrt(rest > 0 ? rest : NAN), root = rest * inverse;
    cla_chud_plane t;
    *l = root / scale;
    t.cosine = root * over;
    t.secant = a * inverse;
    t.sine = b * over;
    return t;
}

CLA_INLINE cla_chud_plane cla_chud_plane_of(int downdate, CLA_REAL *l, cla_lane x)
{
    return downdate ? cla_hyperbolic(l, x) : cla_givens(l, x);
}

/* [a, x] by a rotation: x by the new a, which is the mixed form of hyperbolic rotations, and stable. */
CLA_INLINE void cla_chud_turn(int downdate, cla_chud_plane t, cla_lane *a, cla_lane *x)
{
    const cla_lane former = *a, other = cla_lane_mul(cla_lane_conj(t.sine), *x);
    *a = downdate ? (former - other) * t.secant : former * t.cosine + other;
    *x = cla_lane_fnma(t.sine, downdate ? *a : former, *x * t.cosine);
}

/* Returns 0 or 1 + the index of the first pivot that is NaN, or, in a downdate, not positive. */
CLA_INLINE int cla_chud(int n, int r, int downdate, cla_matrix A, cla_matrix X)
{
    int info = 0;
    for (int j = 0; j < n; j++)
        for (int p = 0; p < r; p++) {
            CLA_REAL l = cla_lane_re(cla_get(A, j, j));
            const cla_chud_plane t = cla_chud_plane_of(downdate, &l, cla_get(X, j, p));
            if (isnan(l) && !info) info = j + 1;
            cla_set(A, j, j, cla_lane_real(l));
            for (int i = j + 1; i < n; i++) {
                cla_lane a = cla_get(A, i, j), x = cla_get(X, i, p);
                cla_chud_turn(downdate, t, &a, &x);
                cla_set(A, i, j, a);
                cla_set(X, i, p, x);
            }
        }
    return info;
}

#ifdef CHUD_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; xconj is 0: X is as it is */
__kernel void chud_batch(long lanes, long nm, long n, long r, long downdate, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *restrict X, x), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int first = cla_chud(n, r, downdate, CLA_MATRIX(A, a, q, aconj), CLA_MATRIX(X, x, q, 0));
    if (q < nm) info[q] = first;
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N, R, DOWNDATE and, in numbers, ARS, ACS,
 * XRS, XCS; ACONJ, 1 if memory holds the conjugates of A. Tunables:
 *
 * CHUD_ITEM   one work-item a matrix: X in its registers, N R lanes, the columns of A pass by
 *   GROUP     work-items of a work-group
 */
#ifdef CHUD_ITEM
#include "known.h"
#ifndef DOWNDATE
#define DOWNDATE 0
#endif

#define PLACE(i, j) ((i) * ARS + (j) * ACS)
#define STEP(j) { \
        CLA_REAL l = cla_lane_re(cla_lane_load(A, PLACE(j, j))); \
        cla_chud_plane turns[R]; \
        CLA_UNROLL for (int p = 0; p < R; p++) turns[p] = cla_chud_plane_of(DOWNDATE, &l, x[j][p]); \
        if (isnan(l) && !bad) bad = j + 1; \
        cla_lane_store(A, PLACE(j, j), cla_lane_real(l)); \
        CLA_UNROLL for (int i = j + 1; i < N; i++) { \
            cla_lane a = cla_lane_load_as(ACONJ, A, PLACE(i, j)); \
            CLA_UNROLL for (int p = 0; p < R; p++) cla_chud_turn(DOWNDATE, turns[p], &a, &x[i][p]); \
            cla_lane_store_as(ACONJ, A, PLACE(i, j), a); \
        } \
    }

__kernel CLA_GROUP_OF(GROUP) void chud_item(long lanes, long nm, __global CLA_REAL *restrict A, long a0, long aps,
                                            __global CLA_REAL *restrict X, long x0, long xps, __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + cla_lane_place(q, aps);
    X += x0 + cla_lane_place(q, xps);
    cla_lane x[N][R];
    int bad = 0;
    CLA_UNROLL for (int i = 0; i < N; i++)
        CLA_UNROLL for (int p = 0; p < R; p++) x[i][p] = cla_lane_load(X, i * XRS + p * XCS);
    CLA_UNROLL1(N, STEP)
    if (q < nm) info[q] = bad;
}
#undef PLACE
#undef STEP
#endif

#endif
