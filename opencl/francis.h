/* Hessenberg and Schur forms: reflections, and the implicit QR algorithm with two shifts at a time for real matrices, which
 * keep blocks of two rows, and one for complex ones.
 */
#ifndef CLA_FRANCIS_H
#define CLA_FRANCIS_H

#include "complex.h"
#include "householder.h"
#include "jacobi.h"

#define CLA_FRANCIS_EPS (2 * CLA_ROUNDING)
#define CLA_FRANCIS_LEAST ldexp((CLA_REAL)1, sizeof(CLA_REAL) == 8 ? -960 : -98) /* counts as nothing, of scaled matrices and beside one */
#define CLA_FRANCIS_ODD 10                 /* sweeps without a deflation after which other shifts are tried */
#define CLA_FRANCIS_PAIR (1 - CLA_COMPLEX) /* rows of a block behind its first */

CLA_INLINE CLA_REAL cla_signed(CLA_REAL size, CLA_REAL like) { return like < 0 ? CLA_MINUS(size) : size; }

/* A <- Q^H A Q, with zeros below the first subdiagonal, and Z <- Q; tau is room for n numbers. */
CLA_INLINE void cla_hessenberg(int n, int vectors, cla_matrix A, cla_matrix Z, cla_matrix tau)
{
    for (int k = 0; k < n - 2; k++) {
        const int m = n - k - 1;
        const cla_lane t = cla_reflector(m, cla_from(A, k + 1, k));
        cla_set(tau, k, 0, t);
        for (int side = 0; side < 2; side++) {
            const cla_matrix B = side ? cla_conjugated(cla_transposed(A)) : A;
            cla_reflect(m, side ? n : m, cla_from(A, k + 2, k), cla_lane_conj(t), cla_from(B, k + 1, side ? 0 : k + 1));
        }
    }
    for (int i = 0; vectors && i < n; i++)
        for (int j = 0; j < n; j++) cla_set(Z, i, j, cla_lane_real(i == j));
    for (int k = n - 3; k >= 0; k--) {
        const int m = n - k - 1;
        if (vectors) cla_reflect(m, m, cla_from(A, k + 2, k), cla_get(tau, k, 0), cla_from(Z, k + 1, k + 1));
        for (int i = k + 2; i < n; i++) cla_set(A, i, k, cla_lane_real(0));
    }
}

/* Whether what is before the diagonal in row k counts as nothing (Ahues and Tisseur, 1997); `last` ends the block. */
CLA_INLINE int cla_negligible(cla_matrix H, int k, int last)
{
    const cla_lane x = cla_get(H, k - 1, k - 1), y = cla_get(H, k, k);
    const CLA_REAL size = cla_lane_abs1(cla_get(H, k, k - 1)), other = cla_lane_abs1(cla_get(H, k - 1, k));
    const CLA_REAL eps = CLA_FRANCIS_EPS, least = CLA_FRANCIS_LEAST;
    const CLA_REAL own = cla_lane_abs1(y), difference = cla_lane_abs1(x - y);
    const CLA_REAL far = fmax(own, difference), close = fmin(own, difference), larger = fmax(size, other);
    if (size <= fmax(least, (far + larger) * least)) return 1;
    CLA_REAL near = cla_lane_abs1(x) + cla_lane_abs1(y);
    if (near == 0) {
        if (k > 1) near += cla_lane_abs1(cla_get(H, k - 1, k - 2));
        if (k < last) near += cla_lane_abs1(cla_get(H, k + 1, k));
    }
    if (!(size <= eps * near)) return 0;
    return fmin(size, other) * larger <= fmax(eps * far * close, (far + larger) * (eps * least));
}

/* M <- M (I - tau [1; v] [1; v]^H) in columns k and up, of which there are `size`, for m rows; v is {b, c}. */
CLA_INLINE void cla_reflect_columns(int m, int k, int size, cla_matrix M, cla_lane tau, cla_lane b, cla_lane c)
{
    for (int i = 0; i < m; i++) {
        const cla_lane x = cla_get(M, i, k), y = cla_get(M, i, k + 1);
        const cla_lane z = size > 2 ? cla_get(M, i, k + 2) : cla_lane_real(0);
        const cla_lane w = cla_lane_mul(tau, cla_lane_fma(z, c, cla_lane_fma(y, b, x)));
        cla_set(M, i, k, x - w);
        cla_set(M, i, k + 1, cla_lane_fnma(w, cla_lane_conj(b), y));
        if (size > 2) cla_set(M, i, k + 2, cla_lane_fnma(w, cla_lane_conj(c), z));
    }
}

/* A step of the QR algorithm on rows `top` to `bottom` of H; tries says how many there were without a deflation. */
CLA_INLINE void cla_francis(int n, int vectors, int top, int bottom, int tries, cla_matrix H, cla_matrix Z)
{
    const int late = tries % (2 * CLA_FRANCIS_ODD) == 0, odd = tries % CLA_FRANCIS_ODD == 0;
    const cla_lane start = late ? cla_get(H, bottom, bottom) : cla_get(H, top, top);
    const int at = late ? bottom - 1 : top, next = late ? max(bottom - 2, 0) : min(top + 1, n - 2);
    CLA_REAL size = cla_lane_abs1(cla_get(H, at + 1, at));
    cla_lane x = cla_get(H, bottom - 1, bottom - 1), above = cla_get(H, bottom - 1, bottom);
    cla_lane below = cla_get(H, bottom, bottom - 1), y = cla_get(H, bottom, bottom);
    cla_lane first, second, third = cla_lane_real(0);
#if CLA_COMPLEX
    const cla_complex product = cla_complex_times(above, below), halved = (x - y) * (CLA_REAL)0.5;
    cla_complex root = cla_complex_root(cla_complex_times(halved, halved) + product);
    if (halved.x * root.x + halved.y * root.y < 0) root = cla_complex_scaled(root, -1);
    const cla_complex total = halved + root;
    cla_lane shift = y;
    if (total.x != 0 || total.y != 0) shift = y - cla_complex_times(product, cla_complex_inverse(total));
    if (odd) shift = start + cla_lane_real(size * (CLA_REAL)0.75);
    first = cla_get(H, top, top) - shift;
    second = cla_get(H, top + 1, top);
#else
    if (odd) {
        size += cla_lane_abs1(cla_get(H, next + 1, next));
        x = y = start + size * (CLA_REAL)0.75;
        above = size * (CLA_REAL)-0.4375;
        below = size;
    }
    const CLA_REAL middle = (x + y) * (CLA_REAL)0.5, halved = (x - y) * (CLA_REAL)0.5;
    const CLA_REAL square = fma(halved, halved, above * below), root = sqrt(fabs(square));
    const CLA_REAL nearer = fabs(middle + root - y) <= fabs(middle - root - y) ? middle + root : middle - root;
    const CLA_REAL re = square > 0 ? nearer : middle, im = square > 0 ? 0 : root;
    const CLA_REAL h = cla_get(H, top, top), difference = h - re, lower = cla_get(H, top + 1, top);
    const CLA_REAL scale = 1 / (fabs(difference) + fabs(im) + fabs(lower)), l = lower * scale;
    first = fma(l, cla_get(H, top, top + 1), fma(difference * scale, difference, im * scale * im));
    second = l * (difference + (cla_get(H, top + 1, top + 1) - re));
    third = l * cla_get(H, top + 2, top + 1);
#endif
    for (int k = top; k < bottom; k++) {
        const int count = min(2 + CLA_FRANCIS_PAIR, bottom - k + 1), before = max(k - 1, 0);
        const cla_matrix column = cla_from(H, k, before);
        cla_lane a = first, b = second, c = third;
        if (k > top) {
            a = cla_get(column, 0, 0);
            b = cla_get(column, 1, 0);
            c = count > 2 ? cla_get(column, 2, 0) : cla_lane_real(0);
        }
        const CLA_REAL sum = cla_lane_abs1(b) + cla_lane_abs1(c);
        const CLA_REAL factor = cla_scale_of(a, cla_add_square(c, cla_add_square(b, 0)));
        const CLA_REAL squares = cla_add_square(c * factor, cla_add_square(b * factor, 0));
        const cla_coefficients found = cla_coefficients_of(a, sum, squares, factor);
        b = cla_lane_mul(b * factor, found.inverse);
        c = cla_lane_mul(c * factor, found.inverse);
        if (k > top) {
            cla_set(column, 0, 0, cla_lane_real(found.beta));
            cla_set(column, 1, 0, cla_lane_real(0));
            if (count > 2) cla_set(column, 2, 0, cla_lane_real(0));
        }
        const cla_matrix adjoint = cla_conjugated(cla_transposed(H));
        cla_reflect_columns(n - k, k, count, cla_from(adjoint, k, 0), found.tau, b, c);
        cla_reflect_columns(min(k + 4, bottom + 1), k, count, H, found.tau, b, c);
        if (vectors) cla_reflect_columns(n, k, count, Z, found.tau, b, c);
    }
}

#if !CLA_COMPLEX
CLA_INLINE void cla_rotate_columns(int m, int k, cla_matrix M, CLA_REAL cosine, CLA_REAL sine)
{
    for (int i = 0; i < m; i++) {
        const CLA_REAL x = cla_get(M, i, k), y = cla_get(M, i, k + 1);
        cla_set(M, i, k, fma(sine, y, cosine * x));
        cla_set(M, i, k + 1, fma(CLA_MINUS(sine), x, cosine * y));
    }
}

/* LAPACK's lanv2 for rows k and k + 1 of T: equal diagonal elements, and others of unequal signs, or a triangle. */
CLA_INLINE void cla_standardise(int n, int k, int vectors, cla_matrix T, cla_matrix Z)
{
    const CLA_REAL upper = cla_get(T, k, k), last = cla_get(T, k + 1, k + 1), halved = (CLA_REAL)0.5;
    CLA_REAL p = (upper - last) * halved, b = cla_get(T, k, k + 1), c = cla_get(T, k + 1, k), a, d, cosine = 1, sine = 0;
    const CLA_REAL scale = ldexp((CLA_REAL)1, ilogb(fmax(fabs(p), fmax(fabs(b), fabs(c)))));
    p /= scale;
    b /= scale;
    c /= scale;
    const CLA_REAL square = fma(p, p, b * c);
    if (square >= 8 * CLA_ROUNDING) { /* real eigenvalues that are not almost equal */
        const CLA_REAL root = p + cla_signed(sqrt(square), p), length = sqrt(fma(root, root, c * c));
        a = last + root * scale;
        d = last - b * c / root * scale;
        cosine = root / length;
        sine = c / length;
        b = b - c;
        c = 0;
    } else {
        const CLA_REAL total = b + c, difference = p + p, length = sqrt(fma(total, total, difference * difference));
        if (length != 0 && difference != 0) {
            cosine = sqrt((1 + fabs(total) / length) * halved);
            sine = CLA_MINUS(cla_signed(p / (length * cosine), total));
        }
        const CLA_REAL aa = fma(b, sine, p * cosine), bb = fma(b, cosine, CLA_MINUS(p) * sine);
        const CLA_REAL cc = fma(c, cosine, CLA_MINUS(p) * sine), dd = CLA_MINUS(fma(c, sine, p * cosine));
        b = fma(dd, sine, bb * cosine);
        c = fma(cc, cosine, CLA_MINUS(aa) * sine);
        a = d = (upper + last) * halved;
        if (b == 0 && c != 0) {
            const CLA_REAL former = cosine;
            b = CLA_MINUS(c);
            c = 0;
            cosine = CLA_MINUS(sine);
            sine = former;
        } else if ((b < 0 && c < 0) || (b > 0 && c > 0)) {
            const CLA_REAL left = sqrt(fabs(b)), right = sqrt(fabs(c)), inverse = 1 / sqrt(fabs(b + c));
            const CLA_REAL size = cla_signed(left * right, c) * scale, former = cosine;
            a += size;
            d -= size;
            b = b - c;
            c = 0;
            cosine = cosine * (left * inverse) - sine * (right * inverse);
            sine = former * (right * inverse) + sine * (left * inverse);
        }
    }
    if (k + 2 < n) cla_rotate_columns(n - k - 2, k, cla_transposed(cla_from(T, 0, k + 2)), cosine, sine);
    cla_rotate_columns(k, k, T, cosine, sine);
    if (vectors) cla_rotate_columns(n, k, Z, cosine, sine);
    cla_set(T, k, k, a);
    cla_set(T, k, k + 1, b * scale);
    cla_set(T, k + 1, k, c * scale);
    cla_set(T, k + 1, k + 1, d);
}
#endif

#endif
