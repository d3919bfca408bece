/* geev: A V = V diag(w) for one lane (pack level) and for a batch (define GEEV_BATCH).
 *
 * A is n x n and overwritten, w n complex numbers, V n x n and complex, Z n x n of the type of A, where Schur vectors have
 * room. LAPACK's way: A is permuted and scaled, made a Hessenberg matrix by reflections and triangular by the QR
 * algorithm, with two shifts at a time for real matrices, which keep blocks of two, and one for complex ones.
 * Eigenvectors are found by substitution.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item does one lane.
 */
#ifndef CLA_GEEV_CL
#define CLA_GEEV_CL

#include "householder.h"
#include "jacobi.h"
#include "laswp.h"

/* Of the largest number of a scaled matrix; what counts as nothing then; as large as numbers of vectors become; of
 * factors of rows and columns. */
#define CLA_GEEV_EXPONENT (sizeof(CLA_REAL) == 8 ? 300 : 30)
#define CLA_GEEV_LEAST ldexp((CLA_REAL)1, sizeof(CLA_REAL) == 8 ? -960 : -98)
#define CLA_GEEV_LARGE ldexp((CLA_REAL)1, sizeof(CLA_REAL) == 8 ? 200 : 40)
#define CLA_GEEV_FACTOR ldexp((CLA_REAL)1, sizeof(CLA_REAL) == 8 ? 300 : 24)
#define CLA_GEEV_EPS (2 * CLA_ROUNDING)
#define CLA_GEEV_TRIES 30 /* sweeps for each eigenvalue, as LAPACK has */
#define CLA_GEEV_ODD 10   /* sweeps without a deflation after which other shifts are tried */
#define CLA_GEEV_PASSES 30
#define CLA_GEEV_PAIR (1 - CLA_COMPLEX) /* rows of a block behind its first */

/* Complex numbers, also beside real matrices. */
typedef CLA_PASTE(CLA_REAL, 2) cla_complex;
CLA_INLINE cla_complex cla_complex_of(CLA_REAL re, CLA_REAL im)
{
    cla_complex z;
    z.x = re;
    z.y = im;
    return z;
}
CLA_INLINE cla_complex cla_complex_of_lane(cla_lane a) { return cla_complex_of(cla_lane_re(a), cla_lane_im(a)); }
CLA_INLINE cla_complex cla_complex_times(cla_complex a, cla_complex b)
{
    return cla_complex_of(fma(CLA_MINUS(a.y), b.y, a.x * b.x), fma(a.y, b.x, a.x * b.y));
}
CLA_INLINE cla_complex cla_complex_scaled(cla_complex a, CLA_REAL b) { return cla_complex_of(a.x * b, a.y * b); }
CLA_INLINE cla_complex cla_complex_less(cla_complex a, cla_complex b) { return cla_complex_of(a.x - b.x, a.y - b.y); }
CLA_INLINE CLA_REAL cla_complex_abs1(cla_complex a) { return fabs(a.x) + fabs(a.y); }
CLA_INLINE cla_complex cla_complex_inverse(cla_complex a)
{
    const CLA_REAL scale = 1 / fmax(fabs(a.x), fabs(a.y)), x = a.x * scale, y = a.y * scale;
    const CLA_REAL factor = scale / fma(x, x, y * y);
    return cla_complex_of(x * factor, CLA_MINUS(y) * factor);
}
CLA_INLINE cla_complex cla_complex_root(cla_complex a)
{
    const CLA_REAL larger = sqrt((hypot(a.x, a.y) + fabs(a.x)) * (CLA_REAL)0.5);
    const CLA_REAL smaller = larger == 0 ? 0 : fabs(a.y) * (CLA_REAL)0.5 / larger;
    const CLA_REAL im = a.x >= 0 ? smaller : larger;
    return cla_complex_of(a.x >= 0 ? larger : smaller, a.y < 0 ? CLA_MINUS(im) : im);
}

/* Element (i, j) of a matrix of complex numbers. */
CLA_INLINE cla_complex cla_complex_get(cla_matrix V, int i, int j)
{
    const long at = i * V.rs + j * V.cs;
    return cla_complex_of(V.p[at], V.p[at + CLA_VLEN]);
}
CLA_INLINE void cla_complex_set(cla_matrix V, int i, int j, cla_complex z)
{
    const long at = i * V.rs + j * V.cs;
    V.p[at] = z.x;
    V.p[at + CLA_VLEN] = z.y;
}

CLA_INLINE CLA_REAL cla_signed(CLA_REAL size, CLA_REAL like) { return like < 0 ? CLA_MINUS(size) : size; }

/* Balance A, as LAPACK's gebal: rows and columns that hold an eigenvalue go to the ends, others are scaled. F(i) is the
 * place that i was swapped with, or for lo to hi a factor. */
#define CLA_GEEV_F(i) V.p[(i) * V.rs]
CLA_INLINE void cla_balance(int n, cla_matrix A, cla_matrix V, int *from, int *to)
{
    int lo = 0, hi = n - 1;
    for (int end = 1; end >= 0; end--) {
        for (int again = 1; again && lo < hi;) {
            again = 0;
            for (int r = hi; r >= lo && !again; r--) {
                CLA_REAL sum = 0;
                for (int c = lo; c <= hi; c++)
                    if (c != r) sum += cla_lane_abs1(end ? cla_get(A, r, c) : cla_get(A, c, r));
                if (sum != 0) continue;
                const int last = end ? hi-- : lo++;
                cla_swap_rows(r, last, n, A);
                cla_swap_rows(r, last, n, cla_transposed(A));
                CLA_GEEV_F(last) = r;
                again = 1;
            }
        }
    }
    for (int i = lo; i <= hi; i++) CLA_GEEV_F(i) = 1;
    for (int pass = 0, again = 1; again && pass < CLA_GEEV_PASSES; pass++) {
        again = 0;
        for (int i = lo; i <= hi; i++) {
            CLA_REAL column = 0, row = 0;
            for (int j = lo; j <= hi; j++) {
                column += cla_lane_abs1(cla_get(A, j, i));
                row += cla_lane_abs1(cla_get(A, i, j));
            }
            if (!(column > 0 && row > 0)) continue;
            const CLA_REAL most = CLA_GEEV_FACTOR, former = CLA_GEEV_F(i);
            const CLA_REAL wanted = sqrt(row / column) * (CLA_REAL)1.4142135623730951;
            const CLA_REAL held = fmax(fmin(wanted, most / former), 1 / most / former);
            const CLA_REAL factor = ldexp((CLA_REAL)1, ilogb(held)), inverse = 1 / factor;
            if (!(column * factor + row * inverse < (column + row) * (CLA_REAL)0.95)) continue;
            again = 1;
            CLA_GEEV_F(i) = former * factor;
            for (int j = 0; j < n; j++) cla_set(A, j, i, cla_get(A, j, i) * factor);
            for (int j = 0; j < n; j++) cla_set(A, i, j, cla_get(A, i, j) * inverse);
        }
    }
    *from = lo;
    *to = hi;
}

/* Z <- vectors of the matrix before it was balanced. */
CLA_INLINE void cla_unbalance(int n, cla_matrix Z, cla_matrix V, int lo, int hi)
{
    for (int i = lo; i <= hi; i++)
        for (int j = 0; j < n; j++) cla_set(Z, i, j, cla_get(Z, i, j) * CLA_GEEV_F(i));
    for (int i = lo - 1; i >= 0; i--) cla_swap_rows(i, (int)CLA_GEEV_F(i), n, Z);
    for (int i = hi + 1; i < n; i++) cla_swap_rows(i, (int)CLA_GEEV_F(i), n, Z);
}

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
    const CLA_REAL eps = CLA_GEEV_EPS, least = CLA_GEEV_LEAST;
    if (size <= least) return 1;
    CLA_REAL near = cla_lane_abs1(x) + cla_lane_abs1(y);
    if (near == 0) {
        if (k > 1) near += cla_lane_abs1(cla_get(H, k - 1, k - 2));
        if (k < last) near += cla_lane_abs1(cla_get(H, k + 1, k));
    }
    if (!(size <= eps * near)) return 0;
    const CLA_REAL own = cla_lane_abs1(y), difference = cla_lane_abs1(x - y);
    const CLA_REAL far = fmax(own, difference), close = fmin(own, difference), larger = fmax(size, other);
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
    const int late = tries % (2 * CLA_GEEV_ODD) == 0, odd = tries % CLA_GEEV_ODD == 0;
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
        const int count = min(2 + CLA_GEEV_PAIR, bottom - k + 1), before = max(k - 1, 0);
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

/* number / divisor, where that is not too large; else column j of V, of which rows 0 to `end` are there, is made
 * smaller, and `factor` with it. */
CLA_INLINE cla_complex cla_divided(cla_complex number, cla_complex divisor, CLA_REAL tiny, int end, cla_matrix V, int j,
                                   CLA_REAL *factor)
{
    if (cla_complex_abs1(divisor) < tiny) divisor = cla_complex_of(tiny, 0);
    const CLA_REAL limit = cla_complex_abs1(divisor) * CLA_GEEV_LARGE, size = cla_complex_abs1(number);
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
    const CLA_REAL tiny = fmax(cla_complex_abs1(w) * CLA_GEEV_EPS, CLA_GEEV_LEAST);
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

/* w is a matrix n x 1. Returns 0; or n for a matrix with NaN or infinities, or whose iteration did not end: its results
 * are NaN. */
CLA_INLINE int cla_geev(int n, int vectors, cla_matrix A, cla_matrix w, cla_matrix V, cla_matrix Z)
{
    CLA_REAL largest = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) largest = cla_larger(largest, cla_get(A, i, j));
    int failed = !(largest < INFINITY), lo = 0, hi = n - 1;
    const int power = failed ? 0 : cla_power(largest, CLA_GEEV_EXPONENT);
    for (int i = 0; !failed && i < n; i++)
        for (int j = 0; j < n; j++) cla_set(A, i, j, cla_scaled(cla_get(A, i, j), power));
    if (!failed) {
        cla_balance(n, A, V, &lo, &hi);
        cla_hessenberg(n, vectors, A, Z, w);
        int tries = 0, left = CLA_GEEV_TRIES * max(n, 10);
        for (int i = n - 1; i >= 0 && !failed;) {
            int top = i;
            while (top > 0 && !cla_negligible(A, top, i)) top--;
            if (top > 0) cla_set(A, top, top - 1, cla_lane_real(0));
            if (top >= i - CLA_GEEV_PAIR) {
                i = top - 1;
                tries = 0;
            } else {
                failed = left-- == 0;
                tries++;
                if (!failed) cla_francis(n, vectors, top, i, tries, A, Z);
            }
        }
    }
    if (!failed) {
#if !CLA_COMPLEX
        for (int k = 0; k < n - 1; k++)
            if (cla_get(A, k + 1, k) != 0) cla_standardise(n, k, vectors, A, Z);
#endif
        for (int i = 0; i < n; i++) {
            cla_complex x = cla_complex_of_lane(cla_get(A, i, i));
#if !CLA_COMPLEX
            const CLA_REAL below = i < n - 1 ? cla_get(A, i + 1, i) : 0, before = i > 0 ? cla_get(A, i, i - 1) : 0;
            if (below != 0) x.y = sqrt(fabs(cla_get(A, i, i + 1))) * sqrt(fabs(below));
            if (before != 0) x.y = CLA_MINUS(sqrt(fabs(cla_get(A, i - 1, i)))) * sqrt(fabs(before));
#endif
            cla_complex_set(w, i, 0, x);
        }
        if (vectors) {
            cla_unbalance(n, Z, V, lo, hi);
            for (int j = 0; j < n; j++) cla_eigenvector(n, j, cla_complex_get(w, j, 0), A, V);
            for (int j = 0; j < n; j++) cla_back(n, j, CLA_COMPLEX || cla_complex_get(w, j, 0).y != 0, A, Z, V);
        }
    }
    for (int i = 0; i < n; i++) {
        const cla_complex x = cla_complex_get(w, i, 0), nothing = cla_complex_of(NAN, NAN);
        cla_complex_set(w, i, 0, failed ? nothing : cla_complex_of(ldexp(x.x, CLA_MINUS(power)), ldexp(x.y, CLA_MINUS(power))));
        for (int j = 0; failed && vectors && j < n; j++) cla_complex_set(V, i, j, nothing);
    }
    return failed ? n : 0;
}

#ifdef GEEV_BATCH
/* compute_v is 0 where V is wanted; info[q] for the first nm lanes, those that hold a matrix */
__kernel void geev_batch(long lanes, long nm, long n, long compute_v, CLA_OPERAND(CLA_REAL *A, a),
                         CLA_OPERAND(CLA_REAL *w, w), CLA_OPERAND(CLA_REAL *V, v), CLA_OPERAND(CLA_REAL *Z, z),
                         __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const int failed = cla_geev(n, compute_v == 0, CLA_MATRIX(A, a, q, 0), CLA_MATRIX(w, w, q, 0), CLA_MATRIX(V, v, q, 0),
                                CLA_MATRIX(Z, z, q, 0));
    if (q < nm) info[q] = failed;
}
#endif
#endif
