/* The lane type and the matrix of lanes: what every kernel here is written in.
 *
 * One work-item holds one lane: a number of type CLA_REAL, or for CLA_COMPLEX a pair (.x the real, .y the imaginary
 * part). + and - are the operators of OpenCL C; the functions below are what else there is. What is real whatever lanes
 * are, such as a modulus, is a plain CLA_REAL, for all operators and comparisons of OpenCL C; an integer lane, such as
 * the place of a pivot, is a plain int. A work-item sees no lane but its own: what asks whether any or all lanes of a
 * vector are such and such on a CPU is `if` here.
 *
 * Memory: a pack interleaves CLA_VLEN matrices, so the lanes of one element lie side by side. Offsets and strides count
 * CLA_REAL elements. An element's imaginary part lies `im` after its real part: CLA_VLEN in a pack, 1 in an ordinary
 * array.
 *
 * Names in files that are there to be included begin with cla_, and macros with CLA_. What has no such name is known
 * only where a file is compiled for one of its own kernels.
 */
#ifndef CLA_LANE_H
#define CLA_LANE_H

#ifndef CLA_REAL
#define CLA_REAL double /* float or double */
#endif
#ifndef CLA_COMPLEX
#define CLA_COMPLEX 0 /* 1: an element is a pair of CLA_REAL */
#endif
#ifndef CLA_VLEN
#define CLA_VLEN 32 /* vector length: matrices of a pack */
#endif

#define CLA_PARTS (1 + CLA_COMPLEX) /* CLA_REAL numbers in an element */
#define CLA_PASTE_(a, b) a##b
#define CLA_PASTE(a, b) CLA_PASTE_(a, b)
#ifndef CLA_INLINE
#define CLA_INLINE static inline __attribute__((always_inline)) /* a compiler that does not optimize may be told less */
#endif
#ifndef CLA_LOCAL
#define CLA_LOCAL __local /* where a pointer points; arrays are declared with __local */
#endif
#ifndef CLA_ALL
#define CLA_ALL(type, a) ((type)(a)) /* a vector of numbers that are all a */
#endif

/* -a, of a number or a lane. Intel's compiler for CPUs takes a negation, and what is made of negations and of what
 * work-items share, for shared: where that lives across a barrier, all work-items get the value of one of them. It knows
 * better of differences; zeros are +0 then. */
#ifdef __INTEL_LLVM_COMPILER
#define CLA_MINUS(a) (0 - (a))
#else
#define CLA_MINUS(a) (-(a))
#endif

/* Of real numbers. rsqrt is right to 2 units in the last place; minimum and maximum are NaN where one of two is. */
CLA_INLINE CLA_REAL cla_lane_sqrt(CLA_REAL a) { return sqrt(a); }
CLA_INLINE CLA_REAL cla_lane_rsqrt(CLA_REAL a) { return rsqrt(a); }
CLA_INLINE CLA_REAL cla_lane_minimum(CLA_REAL a, CLA_REAL b) { return a < b || isnan(a) ? a : b; }
CLA_INLINE CLA_REAL cla_lane_maximum(CLA_REAL a, CLA_REAL b) { return a > b || isnan(a) ? a : b; }
CLA_INLINE CLA_REAL cla_lane_copysign(CLA_REAL a, CLA_REAL sign) { return copysign(a, sign); }

#if CLA_COMPLEX

typedef CLA_PASTE(CLA_REAL, 2) cla_lane;
typedef float2 cla_lane_float;
#ifdef cl_khr_fp64
typedef double2 cla_lane_double;
#endif

CLA_INLINE cla_lane cla_lane_of(CLA_REAL re, CLA_REAL im)
{
    cla_lane a;
    a.x = re;
    a.y = im;
    return a;
}
CLA_INLINE CLA_REAL cla_lane_re(cla_lane a) { return a.x; }
CLA_INLINE CLA_REAL cla_lane_im(cla_lane a) { return a.y; }
CLA_INLINE cla_lane cla_lane_conj(cla_lane a) { return cla_lane_of(a.x, CLA_MINUS(a.y)); }
CLA_INLINE int cla_lane_is_zero(cla_lane a) { return a.x == 0 && a.y == 0; }
/* |a|, which neither overflows nor underflows on the way, and |re| + |im| */
CLA_INLINE CLA_REAL cla_lane_abs(cla_lane a) { return hypot(a.x, a.y); }
CLA_INLINE CLA_REAL cla_lane_abs1(cla_lane a) { return fabs(a.x) + fabs(a.y); }
CLA_INLINE cla_lane cla_lane_mul(cla_lane a, cla_lane b)
{
    return cla_lane_of(fma(a.x, b.x, CLA_MINUS(a.y) * b.y), fma(a.x, b.y, a.y * b.x));
}
/* c + a b */
CLA_INLINE cla_lane cla_lane_fma(cla_lane a, cla_lane b, cla_lane c)
{
    return cla_lane_of(fma(CLA_MINUS(a.y), b.y, fma(a.x, b.x, c.x)), fma(a.y, b.x, fma(a.x, b.y, c.y)));
}
/* c - a b */
CLA_INLINE cla_lane cla_lane_fnma(cla_lane a, cla_lane b, cla_lane c)
{
    return cla_lane_of(fma(a.y, b.y, fma(CLA_MINUS(a.x), b.x, c.x)),
                       fma(CLA_MINUS(a.y), b.x, fma(CLA_MINUS(a.x), b.y, c.y)));
}
/* 1 / a, scaled so that |a|^2 neither overflows nor underflows */
CLA_INLINE cla_lane cla_lane_recip(cla_lane a)
{
    const CLA_REAL s = 1 / fmax(fabs(a.x), fabs(a.y));
    const CLA_REAL x = a.x * s, y = a.y * s;
    const CLA_REAL d = s / fma(x, x, y * y);
    return cla_lane_of(x * d, CLA_MINUS(y) * d);
}
/* a b for a scalar a of BLAS: a real one touches no part with the other's infinity */
CLA_INLINE cla_lane cla_lane_scale(cla_lane a, cla_lane b)
{
    return a.y == 0 ? cla_lane_of(a.x * b.x, a.x * b.y) : cla_lane_mul(a, b);
}
/* To another precision and back, each number to the nearest. */
CLA_INLINE cla_lane_float cla_lane_to_float(cla_lane a)
{
    cla_lane_float b;
    b.x = a.x;
    b.y = a.y;
    return b;
}
CLA_INLINE cla_lane cla_lane_of_float(cla_lane_float a) { return cla_lane_of(a.x, a.y); }
#ifdef cl_khr_fp64
CLA_INLINE cla_lane_double cla_lane_to_double(cla_lane a)
{
    cla_lane_double b;
    b.x = a.x;
    b.y = a.y;
    return b;
}
CLA_INLINE cla_lane cla_lane_of_double(cla_lane_double a) { return cla_lane_of(a.x, a.y); }
#endif

#else

typedef CLA_REAL cla_lane;
typedef float cla_lane_float;
#ifdef cl_khr_fp64
typedef double cla_lane_double;
#endif

CLA_INLINE cla_lane cla_lane_of(CLA_REAL re, CLA_REAL im) { return re; }
CLA_INLINE CLA_REAL cla_lane_re(cla_lane a) { return a; }
CLA_INLINE CLA_REAL cla_lane_im(cla_lane a) { return 0; }
CLA_INLINE cla_lane cla_lane_conj(cla_lane a) { return a; }
CLA_INLINE int cla_lane_is_zero(cla_lane a) { return a == 0; }
CLA_INLINE CLA_REAL cla_lane_abs(cla_lane a) { return fabs(a); }
CLA_INLINE CLA_REAL cla_lane_abs1(cla_lane a) { return fabs(a); }
CLA_INLINE cla_lane cla_lane_mul(cla_lane a, cla_lane b) { return a * b; }
CLA_INLINE cla_lane cla_lane_fma(cla_lane a, cla_lane b, cla_lane c) { return fma(a, b, c); }
CLA_INLINE cla_lane cla_lane_fnma(cla_lane a, cla_lane b, cla_lane c) { return fma(CLA_MINUS(a), b, c); }
CLA_INLINE cla_lane cla_lane_recip(cla_lane a) { return 1 / a; }
CLA_INLINE cla_lane cla_lane_scale(cla_lane a, cla_lane b) { return a * b; }
CLA_INLINE cla_lane_float cla_lane_to_float(cla_lane a) { return (cla_lane_float)a; }
CLA_INLINE cla_lane cla_lane_of_float(cla_lane_float a) { return (cla_lane)a; }
#ifdef cl_khr_fp64
CLA_INLINE cla_lane_double cla_lane_to_double(cla_lane a) { return (cla_lane_double)a; }
CLA_INLINE cla_lane cla_lane_of_double(cla_lane_double a) { return (cla_lane)a; }
#endif

#endif

CLA_INLINE cla_lane cla_lane_real(CLA_REAL a) { return cla_lane_of(a, 0); }
/* From an integer, and the integer of a real part, which is cut off towards zero. */
CLA_INLINE cla_lane cla_lane_of_int(int a) { return cla_lane_real((CLA_REAL)a); }
CLA_INLINE int cla_lane_to_int(cla_lane a) { return (int)cla_lane_re(a); }
/* a where `yes` is not 0, else b */
CLA_INLINE cla_lane cla_lane_select(int yes, cla_lane a, cla_lane b) { return yes ? a : b; }

/* The element at p[i], its imaginary part im further. */
CLA_INLINE cla_lane cla_lane_load_apart(__global const CLA_REAL *p, long i, long im)
{
#if CLA_COMPLEX
    return cla_lane_of(p[i], p[i + im]);
#else
    return p[i];
#endif
}

CLA_INLINE void cla_lane_store_apart(__global CLA_REAL *p, long i, long im, cla_lane a)
{
#if CLA_COMPLEX
    p[i] = a.x;
    p[i + im] = a.y;
#else
    p[i] = a;
#endif
}

/* The element of a pack at p[i]. */
CLA_INLINE cla_lane cla_lane_load(__global const CLA_REAL *p, long i) { return cla_lane_load_apart(p, i, CLA_VLEN); }
CLA_INLINE void cla_lane_store(__global CLA_REAL *p, long i, cla_lane a) { cla_lane_store_apart(p, i, CLA_VLEN, a); }

/* The element of a pack at p[i] where there is one, else 0: at the edge of a matrix. What the work-item at the edge has is
 * no substitute, which that may have stored already. */
CLA_INLINE cla_lane cla_lane_load_if(int exists, __global const CLA_REAL *p, long i)
{
    return exists ? cla_lane_load(p, i) : cla_lane_real(0);
}

/* The element of a pack at p[i], conjugated or as it is. */
CLA_INLINE cla_lane cla_lane_load_as(int conj, __global const CLA_REAL *p, long i)
{
    const cla_lane a = cla_lane_load(p, i);
    return conj ? cla_lane_conj(a) : a;
}

/* Likewise in lane l from that at p, or if `common` of the one ordinary matrix there for all lanes. */
CLA_INLINE cla_lane cla_lane_load_of(int common, int conj, __global const CLA_REAL *p, int l, long i)
{
    const cla_lane a = common ? cla_lane_load_apart(p, i, 1) : cla_lane_load(p, l + i);
    return conj ? cla_lane_conj(a) : a;
}
CLA_INLINE void cla_lane_store_as(int conj, __global CLA_REAL *p, long i, cla_lane a)
{
    cla_lane_store(p, i, conj ? cla_lane_conj(a) : a);
}

/* Where lane q begins in packs that are ps apart. */
CLA_INLINE long cla_lane_place(long q, long ps) { return q / CLA_VLEN * ps + q % CLA_VLEN; }

/* The n integers of matrix q in a batch of shape (npack, n, V), and integer i of them. */
CLA_INLINE __global int *cla_ints_of_batch(__global const int *p, long q, int n)
{
    return (__global int *)p + cla_lane_place(q, (long)n * CLA_VLEN);
}
CLA_INLINE int cla_int_load(__global const int *p, long i) { return p[i * CLA_VLEN]; }
CLA_INLINE void cla_int_store(__global int *p, long i, int a) { p[i * CLA_VLEN] = a; }

/* One lane of a matrix: element (i, j) is at p[i * rs + j * cs], where strides may be negative. */
typedef struct {
    __global CLA_REAL *p;
    long rs, cs, im;
    int conj; /* 1: memory holds the conjugates of the elements */
} cla_matrix;

CLA_INLINE cla_matrix cla_matrix_at(__global const CLA_REAL *p, long rs, long cs)
{
    cla_matrix A = {(__global CLA_REAL *)p, rs, cs, CLA_VLEN, 0};
    return A;
}

/* Matrix q of a contiguous batch of m x n matrices, shape (npack, m, n, V) or (npack, m, n, 2, V). */
CLA_INLINE cla_matrix cla_matrix_of_batch(__global const CLA_REAL *p, long q, int m, int n)
{
    return cla_matrix_at(p + q / CLA_VLEN * m * n * CLA_PARTS * CLA_VLEN + q % CLA_VLEN, n * CLA_PARTS * CLA_VLEN,
                         CLA_PARTS * CLA_VLEN);
}

/* Matrix q of packs that are ps apart, the first at p[p0]. */
CLA_INLINE cla_matrix cla_matrix_of_packs(__global const CLA_REAL *p, long q, long p0, long ps, long rs, long cs,
                                          int conj)
{
    cla_matrix A = cla_matrix_at(p + p0 + cla_lane_place(q, ps), rs, cs);
    A.conj = conj;
    return A;
}

/* Likewise, or if `common` the one ordinary matrix for all of them that is at p[p0]. */
CLA_INLINE cla_matrix cla_matrix_of(int common, __global const CLA_REAL *p, long q, long p0, long ps, long rs, long cs,
                                    int conj)
{
    cla_matrix A = cla_matrix_of_packs(p, q, p0, ps, rs, cs, conj);
    if (common) {
        A.p = (__global CLA_REAL *)p + p0;
        A.im = 1;
    }
    return A;
}

/* Arguments of kernels: a scalar of BLAS, by its real and imaginary part, and its value; an operand of a batch, by its
 * pointer, such as `const CLA_REAL *restrict A`, and as a0, aps, ars and acs where its first matrix begins and strides
 * from pack to pack, row to row and column to column, and as aconj whether it is conjugated; and matrix q of it. */
#define CLA_SCALAR(alpha) CLA_REAL alpha, CLA_REAL alpha##_im
#define CLA_VALUE(alpha) cla_lane_of(alpha, alpha##_im)
#define CLA_VIEW(pointer, a) __global pointer, long a##0, long a##ps, long a##rs, long a##cs
#define CLA_OPERAND(pointer, a) CLA_VIEW(pointer, a), long a##conj
#define CLA_MATRIX(A, a, q, conj) cla_matrix_of_packs(A, q, a##0, a##ps, a##rs, a##cs, conj)
#define CLA_MATRIX_OF(common, A, a, q, conj) cla_matrix_of(common, A, q, a##0, a##ps, a##rs, a##cs, conj)

CLA_INLINE cla_matrix cla_transposed(cla_matrix A)
{
    const long rs = A.rs;
    A.rs = A.cs;
    A.cs = rs;
    return A;
}

CLA_INLINE cla_matrix cla_conjugated(cla_matrix A)
{
    A.conj = !A.conj;
    return A;
}

/* The part of A that begins at row i and column j. */
CLA_INLINE cla_matrix cla_from(cla_matrix A, int i, int j)
{
    A.p += i * A.rs + j * A.cs;
    return A;
}

/* The m rows of A from the last to the first. */
CLA_INLINE cla_matrix cla_rows_reversed(cla_matrix A, int m)
{
    A = cla_from(A, m - 1, 0);
    A.rs = -A.rs;
    return A;
}

/* Both axes of an m x n matrix reversed, which makes an upper triangle a lower one. */
CLA_INLINE cla_matrix cla_reversed(cla_matrix A, int m, int n)
{
    return cla_transposed(cla_rows_reversed(cla_transposed(cla_rows_reversed(A, m)), n));
}

/* What is i numbers behind element (0, 0). */
CLA_INLINE cla_lane cla_matrix_load(cla_matrix A, long i)
{
    const cla_lane a = cla_lane_load_apart(A.p, i, A.im);
    return A.conj ? cla_lane_conj(a) : a;
}

CLA_INLINE void cla_matrix_store(cla_matrix A, long i, cla_lane a)
{
    cla_lane_store_apart(A.p, i, A.im, A.conj ? cla_lane_conj(a) : a);
}

/* Element (i, j). */
CLA_INLINE cla_lane cla_get(cla_matrix A, int i, int j) { return cla_matrix_load(A, i * A.rs + j * A.cs); }
CLA_INLINE void cla_set(cla_matrix A, int i, int j, cla_lane a) { cla_matrix_store(A, i * A.rs + j * A.cs, a); }

#endif
