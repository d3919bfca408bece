/* Eigenvectors of the forms of francis.h by substitution, as by LAPACK's trevc. */
#ifndef CLA_EIGENVECTORS_H
#define CLA_EIGENVECTORS_H

#include "francis.h"

#define CLA_EIGENVECTORS_LARGE ldexp((CLA_REAL)1, sizeof(CLA_REAL) == 8 ? 200 : 40) /* numbers become so large */

/* number / divisor, where that is not too large; else column j of V, of which rows 0 to `end` are there, is made
 * smaller, and `factor` with it. */
CLA_INLINE cla_complex cla_divided(cla_complex number, cla_complex divisor, CLA_REAL tiny, int end, cla_matrix V, int j,
                                   CLA_REAL *factor)
{
    if (cla_complex_abs1(divisor) < tiny) divisor = cla_complex_of(tiny, 0);
    const CLA_REAL limit = cla_complex_abs1(divisor) * CLA_EIGENVECTORS_LARGE, size = cla_complex_abs1(number);
    *factor = 1;
    if (size > limit) {
        const CLA_REAL inverse = 1 / size;
        *factor = limit * inverse;
        number = cla_complex_scaled(cla_complex_scaled(number, inverse), limit);
        for (int r = 0; r <= end; r++) cla_complex_set(V, r, j, cla_complex_scaled(cla_complex_get(V, r, j), *factor));
    }
    return cla_complex_times(number, cla_complex_inverse(divisor));
}

/* Take x times column i of T from rows 0 to count - 1 of column j of V. */
CLA_INLINE void cla_trevc_step(int count, cla_matrix T, int i, cla_matrix V, int j, cla_complex x)
{
    for (int r = 0; r < count; r++) {
        const cla_complex t = cla_complex_of_lane(cla_get(T, r, i));
        cla_complex_set(V, r, j, cla_complex_less(cla_complex_get(V, r, j), cla_complex_times(t, x)));
    }
}

/* Column j of V <- the eigenvector of T for w. */
CLA_INLINE void cla_eigenvector(int n, int j, cla_complex w, cla_matrix T, cla_matrix V)
{
    const CLA_REAL tiny = fmax(cla_complex_abs1(w) * CLA_FRANCIS_EPS, CLA_FRANCIS_LEAST);
    CLA_REAL factor, again;
    for (int i = 0; i < n; i++) cla_complex_set(V, i, j, cla_complex_of(i == j, 0));
    int end = j, first = j; /* the rows that are given */
#if !CLA_COMPLEX
    if (w.y != 0) {
        first = w.y > 0 ? j : j - 1;
        end = first + 1;
        const CLA_REAL above = cla_get(T, first, end), below = cla_get(T, end, first);
        const int wide = fabs(above) >= fabs(below);
        const cla_complex turned = cla_complex_of(0, w.y / (wide ? above : below)), one = cla_complex_of(1, 0);
        cla_complex_set(V, first, j, wide ? one : turned);
        cla_complex_set(V, end, j, wide ? turned : one);
    }
#endif
    for (int i = end; i >= first; i--) cla_trevc_step(first, T, i, V, j, cla_complex_get(V, i, j));
    for (int i = first - 1; i >= 0; i--) {
        const cla_complex d = cla_complex_less(cla_complex_of_lane(cla_get(T, i, i)), w);
        cla_complex x = cla_complex_get(V, i, j);
#if !CLA_COMPLEX
        const int p = max(i - 1, 0);
        if (i > 0 && cla_get(T, i, p) != 0) {
            const cla_complex b = cla_complex_of(cla_get(T, p, i), 0), c = cla_complex_of(cla_get(T, i, p), 0);
            const int keeps = cla_complex_abs1(d) >= cla_complex_abs1(c);
            const cla_complex pivot = keeps ? d : c, right = keeps ? b : d, lower = keeps ? c : d, corner = keeps ? d : b;
            const cla_complex other = cla_complex_get(V, p, j), r1 = keeps ? other : x, r2 = keeps ? x : other;
            const cla_complex multiple = cla_complex_times(lower, cla_complex_inverse(pivot));
            x = cla_divided(cla_complex_less(r2, cla_complex_times(multiple, r1)),
                            cla_complex_less(corner, cla_complex_times(multiple, right)), tiny, end, V, j, &factor);
            const cla_complex y = cla_divided(
                cla_complex_less(cla_complex_scaled(r1, factor), cla_complex_times(right, x)), pivot, tiny, end, V, j, &again);
            x = cla_complex_scaled(x, again);
            cla_complex_set(V, i, j, x);
            cla_complex_set(V, p, j, y);
            cla_trevc_step(p, T, i, V, j, x);
            cla_trevc_step(p, T, p, V, j, y);
            i--;
            continue;
        }
#endif
        x = cla_divided(x, d, tiny, end, V, j, &factor);
        cla_complex_set(V, i, j, x);
        cla_trevc_step(i, T, i, V, j, x);
    }
}

/* Column j of V <- Z times it, of length 1, its largest number real where w is complex; A is room. */
CLA_INLINE void cla_back(int n, int j, int turns, cla_matrix A, cla_matrix Z, cla_matrix V)
{
    const int last = min(j + 2, n);
    CLA_REAL largest = 0, total = 0, most = 0;
    cla_complex number = cla_complex_of(0, 0);
    int place = 0;
    for (int k = 0; k < last; k++) {
        const cla_complex x = cla_complex_get(V, k, j);
#if CLA_COMPLEX
        cla_set(A, 0, k, x);
#else
        cla_set(A, 0, k, x.x);
        if (n > 1) cla_set(A, 1, k, x.y);
#endif
    }
    for (int i = 0; i < n; i++) {
        cla_complex sum = cla_complex_of(0, 0);
        for (int k = 0; k < last; k++) {
#if CLA_COMPLEX
            sum = cla_lane_fma(cla_get(Z, i, k), cla_get(A, 0, k), sum);
#else
            const CLA_REAL z = cla_get(Z, i, k);
            sum = cla_complex_of(fma(z, cla_get(A, 0, k), sum.x), n > 1 ? fma(z, cla_get(A, 1, k), sum.y) : 0);
#endif
        }
        cla_complex_set(V, i, j, sum);
        largest = fmax(largest, fmax(fabs(sum.x), fabs(sum.y)));
    }
    const int power = cla_power(largest, 0);
    for (int i = 0; i < n; i++) {
        cla_complex x = cla_complex_get(V, i, j);
        x = cla_complex_of(ldexp(x.x, power), ldexp(x.y, power));
        cla_complex_set(V, i, j, x);
        const CLA_REAL square = fma(x.x, x.x, x.y * x.y);
        total += square;
        if (square > most) {
            most = square;
            number = x;
            place = i;
        }
    }
    const CLA_REAL inverse = cla_lane_rsqrt(total), phase = cla_lane_rsqrt(most) * inverse;
    const cla_complex factor = turns ? cla_complex_of(number.x * phase, CLA_MINUS(number.y) * phase)
                                     : cla_complex_of(inverse, 0);
    for (int i = 0; i < n; i++) {
        cla_complex x = cla_complex_times(cla_complex_get(V, i, j), factor);
        if (i == place || !(turns || CLA_COMPLEX)) x.y = 0;
        cla_complex_set(V, i, j, x);
    }
}

#endif
