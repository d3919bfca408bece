/* The implicit QR algorithm for singular values of a bidiagonal matrix B, as in LAPACK's bdsqr: steps on its last block,
 * without a shift where an element of the diagonal counts as zero. For OUTCOME, see svd_results.h.
 */
#include "spectral.h"
#include "svd_results.h"

#ifndef VECTORS
#define VECTORS (OUTCOME != 1)
#endif
#define CLA_EXPONENT (sizeof(CLA_REAL) == 8 ? 200 : 24) /* of scaled matrices: products of four neither overflow nor underflow */
#define CLA_FLOOR (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-250 : (CLA_REAL)0x1p-30)

/* Least and largest numbers of a block: of the diagonal but for the last, and of all */
typedef struct {
    CLA_REAL least, largest;
} cla_extremes;

CLA_INLINE cla_extremes cla_extremes_of(cla_block block, CLA_LOCAL const CLA_REAL *d, CLA_LOCAL const CLA_REAL *e)
{
    cla_extremes x = {fabs(d[block.begin]), fabs(d[block.end])};
    for (int i = block.begin; i < block.end; i++) {
        x.least = fmin(x.least, fabs(d[i]));
        x.largest = fmax(x.largest, fmax(fabs(d[i]), fabs(e[i])));
    }
    return x;
}

/* A step on a block of B, and its rotations */
CLA_INLINE void cla_singular_step(cla_block *block, cla_extremes *sizes, CLA_LOCAL CLA_REAL *d, CLA_LOCAL CLA_REAL *e,
                                  CLA_LOCAL cla_plane *left, CLA_LOCAL cla_plane *right)
{
    const int begin = block->begin, end = block->end;
    const CLA_REAL first = fabs(d[end - 1]), last = fabs(d[end]), square = e[end - 1] * e[end - 1];
    const CLA_REAL least = fmin(sizes->least, last);
    /* the smaller singular value of [first, between; 0, last] */
    const CLA_REAL roots = sqrt(fma(first + last, first + last, square)) + sqrt(fma(first - last, first - last, square));
    const int regular = least > sizes->largest * CLA_ROUNDING && least > CLA_FLOOR;
    const CLA_REAL mu = regular ? first * last * 2 / roots : 0;
    CLA_REAL x = d[begin], next = d[begin + 1], off = e[begin], c = 1, s = mu == 0 ? 1 : x;
    CLA_REAL f = mu == 0 ? x : (fabs(x) - mu) * (fabs(x) + mu);
    CLA_REAL before = 0, beside = INFINITY, now = 0; /* of the former place: what it is between, which is known by now */
    cla_extremes found = {INFINITY, 0};
    int split = begin - 1;
    for (int i = begin; i < end; i++) {
        const CLA_REAL y = next, between = c * off;
        split = cla_counts(before, beside, now, CLA_FLOOR) ? split : i - 2;
        if (i > begin + 1) found.largest = fmax(found.largest, beside);
        before = now;
        cla_plane plane = cla_plane_of(f, s * off, &beside);
        if (VECTORS) right[i] = plane;
        off = e[i + 1]; /* or what is behind, where this is the last */
        next = d[i + 2];
        f = fma(plane.y, between, plane.x * x);
        const CLA_REAL above = fma(plane.x, between, CLA_MINUS(plane.y * x)), below = plane.x * y;
        plane = cla_plane_of(f, plane.y * y, &now);
        if (VECTORS) left[i] = plane;
        c = plane.x;
        s = plane.y;
        x = fma(c, below, CLA_MINUS(s * above));
        f = fma(s, below, c * above);
        e[max(i - 1, begin)] = beside;
        d[i] = now;
        found.least = fmin(found.least, fabs(now));
        found.largest = fmax(found.largest, fabs(now));
    }
    split = cla_counts(before, beside, now, CLA_FLOOR) ? split : end - 2;
    e[end - 1] = f;
    d[end] = x;
    found.largest = fmax(found.largest, fmax(fabs(x), fabs(f)));
    cla_after_step(block, split, !cla_counts(now, f, x, CLA_FLOOR), d, e, CLA_FLOOR);
    *sizes = block->begin == begin ? found : cla_extremes_of(*block, d, e);
}
