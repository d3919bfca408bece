/* Householder reflectors, H = I - tau [1; v] [1; v]^H, wherever the matrix is: in registers of a work-item, in memory.
 *
 * CLA_REFLECTOR(k, s) makes the one that turns column s into [beta; 0] from row k on by H^H, as LAPACK's larfg, without
 * overflow or underflow on the way: v takes the place of what is below row k, beta that of element (k, s), and tau, a
 * cla_lane that is there already, is set. Where the column is zero below row k, and real in it, tau is zero. The macros
 * write it out, for the reasons of unroll.h. A file that uses them says what its matrix is, by macros that it drops
 * again:
 *   AT(i, j), SET(i, j, x)   element (i, j); makes it x
 *   EACH_ROW(F, k, s)        F(k, s, i) for all rows i, or for those below row k
 *   EACH_ROW_OF(F, k, s, j)  F(k, s, j, i) likewise
 * CLA_REFLECT(k, s, t, j) applies it to column j; t is tau, or its conjugate for H^H.
 * `cla_reflector` and `cla_reflect` do this in memory, and apply H to other columns.
 */
#ifndef CLA_HOUSEHOLDER_H
#define CLA_HOUSEHOLDER_H

#include "unroll.h"

/* Sums of squares from 1 / CLA_RANGE to CLA_RANGE are right, and so are those of numbers out of it that are multiplied
 * or divided by it: 2^90 in single precision, 2^630 in double. */
#define CLA_2_90 ((CLA_REAL)0x1p90f)
#define CLA_2_270 (CLA_2_90 * CLA_2_90 * CLA_2_90)
#define CLA_RANGE (sizeof(CLA_REAL) == 4 ? CLA_2_90 : CLA_2_270 * CLA_2_270 * CLA_2_90)

/* beta, tau and 1 / (alpha - beta) of larfg. */
typedef struct {
    CLA_REAL beta;
    cla_lane tau, inverse;
} cla_coefficients;

/* total + |a|^2 */
CLA_INLINE CLA_REAL cla_add_square(cla_lane a, CLA_REAL total)
{
    total = fma(cla_lane_re(a), cla_lane_re(a), total);
    return CLA_COMPLEX ? fma(cla_lane_im(a), cla_lane_im(a), total) : total;
}

/* What a column is multiplied by, alpha and what is below it, which has this sum of squares. */
CLA_INLINE CLA_REAL cla_scale_of(cla_lane alpha, CLA_REAL squares)
{
    const CLA_REAL norm = cla_add_square(alpha, squares);
    return norm < 1 / CLA_RANGE ? CLA_RANGE : norm > CLA_RANGE ? 1 / CLA_RANGE : 1;
}

/* Of alpha, and what is below it: the sum of absolute values, and that of the squares of `scale` times them. inverse is
 * for the column times `scale`. */
CLA_INLINE cla_coefficients cla_coefficients_of(cla_lane alpha, CLA_REAL sum, CLA_REAL squares, CLA_REAL scale)
{
    const int none = sum == 0 && cla_lane_im(alpha) == 0;
    const cla_lane a = none ? cla_lane_real(1) : alpha * scale;
    const CLA_REAL re = cla_lane_re(a), im = cla_lane_im(a);
    const CLA_REAL norm = cla_lane_copysign(cla_lane_sqrt(cla_add_square(a, squares)), re), total = re + norm;
    const CLA_REAL factor = 1 / (CLA_COMPLEX ? fma(total, total, im * im) : total);
    cla_coefficients h;
    h.beta = none ? cla_lane_re(alpha) : CLA_MINUS(norm) * (scale > 1 ? 1 / CLA_RANGE : scale < 1 ? CLA_RANGE : 1);
    h.tau = none ? cla_lane_real(0) : cla_lane_of(total / norm, im / norm);
    h.inverse = CLA_COMPLEX ? cla_lane_of(total * factor, CLA_MINUS(im) * factor) : cla_lane_real(factor);
    return h;
}

#define CLA_REFLECTOR(k, s) { \
        const cla_lane alpha = AT(k, s); \
        CLA_REAL squares = 0, sum = 0; \
        EACH_ROW(CLA_ADD_BELOW, k, s) \
        const CLA_REAL scale = cla_scale_of(alpha, squares); \
        squares = 0; \
        EACH_ROW(CLA_ADD_SCALED, k, s) \
        const cla_coefficients h = cla_coefficients_of(alpha, sum, squares, scale); \
        tau = h.tau; \
        SET(k, s, cla_lane_real(h.beta)) \
        EACH_ROW(CLA_DIVIDE_BELOW, k, s) \
    }
#define CLA_ADD_BELOW(k, s, i) \
    if (i > (k)) { \
        sum += cla_lane_abs1(AT(i, s)); \
        squares = cla_add_square(AT(i, s), squares); \
    }
#define CLA_ADD_SCALED(k, s, i) if (i > (k)) squares = cla_add_square(AT(i, s) * scale, squares);
#define CLA_DIVIDE_BELOW(k, s, i) if (i > (k)) { SET(i, s, cla_lane_mul(AT(i, s) * scale, h.inverse)) }

#define CLA_REFLECT(k, s, t, j) { \
        cla_lane w = AT(k, j); \
        EACH_ROW_OF(CLA_ADD_PRODUCT, k, s, j) \
        w = cla_lane_mul(t, w); \
        SET(k, j, AT(k, j) - w) \
        EACH_ROW_OF(CLA_SUBTRACT_PRODUCT, k, s, j) \
    }
#define CLA_ADD_PRODUCT(k, s, j, i) if (i > (k)) w = cla_lane_fma(cla_lane_conj(AT(i, s)), AT(i, j), w);
#define CLA_SUBTRACT_PRODUCT(k, s, j, i) if (i > (k)) { SET(i, j, cla_lane_fnma(AT(i, s), w, AT(i, j))) }

/* A number and a column of m - 1 of them, turned into beta and v; returns tau. */
CLA_INLINE cla_lane cla_reflector_apart(int m, cla_matrix top, cla_matrix c)
{
    cla_lane tau;
#define AT(i, j) ((i) == 0 ? cla_get(top, 0, 0) : cla_get(c, (i) - 1, 0))
#define SET(i, j, x) { if ((i) == 0) cla_set(top, 0, 0, x); else cla_set(c, (i) - 1, 0, x); }
#define EACH_ROW(F, k, s) for (int i = 1; i < m; i++) { F(k, s, i) }
    CLA_REFLECTOR(0, 0)
#undef AT
#undef SET
#undef EACH_ROW
    return tau;
}

/* The column of m numbers at a, turned into [beta; v]; returns tau. */
CLA_INLINE cla_lane cla_reflector(int m, cla_matrix a) { return cla_reflector_apart(m, a, cla_from(a, 1, 0)); }

/* H [top; c] in place of a number and a column of m - 1 of them, as v is; with the conjugate of tau, H^H. Returns the
 * sum of the squares of c. */
CLA_INLINE CLA_REAL cla_reflect_apart(int m, cla_matrix v, cla_lane tau, cla_matrix top, cla_matrix c)
{
    CLA_REAL squares = 0;
    cla_lane w = cla_get(top, 0, 0);
    for (int i = 0; i < m - 1; i++) w = cla_lane_fma(cla_lane_conj(cla_get(v, i, 0)), cla_get(c, i, 0), w);
    w = cla_lane_mul(tau, w);
    cla_set(top, 0, 0, cla_get(top, 0, 0) - w);
    for (int i = 0; i < m - 1; i++) {
        const cla_lane a = cla_lane_fnma(cla_get(v, i, 0), w, cla_get(c, i, 0));
        cla_set(c, i, 0, a);
        squares = cla_add_square(a, squares);
    }
    return squares;
}

/* C <- H C for the m x n matrix C, where v is a column of m - 1 numbers; with the conjugate of tau, H^H. */
CLA_INLINE void cla_reflect(int m, int n, cla_matrix v, cla_lane tau, cla_matrix C)
{
    for (int j = 0; j < n; j++) cla_reflect_apart(m, v, tau, cla_from(C, 0, j), cla_from(C, 1, j));
}

#endif
