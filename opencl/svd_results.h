/* What kernels of singular values take and return, by OUTCOME: 0 for U, S and Vh; 1 for S alone; 2 for the pseudo-inverse X;
 * 3 for least squares: the solutions X of A X = B with R columns, squares of the norms of residuals, NaN where the rank is
 * not full, ranks, and S. For the last two, singular values up to RCOND times the largest count as zeros.
 */
#ifndef OUTCOME
#define OUTCOME 0
#define RCONDTYPE float
#define RCONDPARTS 1
#endif

#if OUTCOME == 0
#define OPERANDS CLA_ARGUMENT(A)
#define RESULTS __global TARGET *restrict U, __global TARGET *restrict S, __global TARGET *restrict Vh
#elif OUTCOME == 1
#define OPERANDS CLA_ARGUMENT(A)
#define RESULTS __global TARGET *restrict S
#elif OUTCOME == 2
#define OPERANDS CLA_ARGUMENT(A) CLA_ARGUMENT(RCOND)
#define RESULTS __global TARGET *restrict X
#else
#define OPERANDS CLA_ARGUMENT(A) CLA_ARGUMENT(B) CLA_ARGUMENT(RCOND)
#define RESULTS \
    __global TARGET *restrict X, __global TARGET *restrict residuals, __global int *restrict ranks, \
        __global TARGET *restrict S
#endif

#ifndef CHAINED
#define CHAINED 0 /* 1: kernels are launched one after the other, and leave numbers */
#endif
#if CHAINED
#define CLA_NUMBERS , __global CLA_REAL *restrict numbers
#else
#define CLA_NUMBERS
#endif

/* Real numbers between the kernels of a chain, number k of matrix q: the diagonal of B, what is beside it, and the power
 * of 2 by which A was scaled, or NaN if it is not finite. They are for 32 matrices each. */
#define CLA_BETWEEN(n, q, k) ((((q) / 32) * (2 * (n) + 2) + (k)) * 32 + (q) % 32)
