/* What kernels of `qr` return, by MODE: 0 for R; 1 for K = min(M, N) columns of Q, and R of K rows; 2 for M columns of Q, and
 * R of M rows; 3 for reflectors and R, transposed, and their scalars, all as LAPACK's geqrf has them. */
#ifndef MODE
#define MODE 1
#endif
#ifndef M
#define M N
#endif
#ifndef K
#define K (M < N ? M : N)
#endif
#define ROWS_OF_R (MODE == 2 ? M : K)
#define COLUMNS_OF_Q (MODE == 2 ? M : K)
#define HAS_Q (MODE == 1 || MODE == 2)

#if MODE == 3
#define CLA_QR_RESULTS , __global TARGET *restrict h, __global TARGET *restrict scalars
#elif HAS_Q
#define CLA_QR_RESULTS , __global TARGET *restrict orthogonal, __global TARGET *restrict upper
#else
#define CLA_QR_RESULTS , __global TARGET *restrict upper
#endif
