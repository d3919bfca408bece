/* gemm of ordinary arrays (gemm_places.h) by blocks: a work-group takes columns of A and rows of B into local memory,
 * and has blocks of C in its registers. Where k is 0 alpha is left out, and nothing is read of A and B.
 *
 * Sizes are arguments, or for SIZED, 1, the macros M, N and K: a block is then a whole matrix. Other macros:
 *
 * MATRICES   matrices of a work-group, more than 1 only if SIZED and STAGES is 1
 * MMA        0: a work-item computes a tile of TI x TJ elements, and there are TEAMI x TEAMJ of them for a block.
 *            1: matrix units of NVIDIA's GPUs compute with doubles, and what has such a tile is a warp, in units of
 *            8 x 8 elements.
 * CHUNK      columns of A in registers at a time, in units of 4 for matrix units, else of 16 bytes
 * DEPTH      columns of A in local memory at a time, a multiple of what CHUNK says
 * STAGES     how many times so many there are, the next under way during the products; 1: DEPTH is K or more
 * WIDTH      numbers of type CLA_REAL in 16 bytes
 * AWIDE, BWIDE, CWIDE   such numbers that are moved at a time, which are neighbours and begin at multiples of them
 * APITCH, BPITCH        elements from one line in local memory to the next: lines are rows, or for ACOLUMNS, 1, columns
 * AOWN, BOWN   0 if all matrices of a work-group share one
 * BETA       0 if beta is
 * CSTAGED    1: C goes through local memory, so that neighbours write neighbours, CPITCH elements from row to row
 * CLA_WARP   of warp.h: 1 if a matrix has a warp of its own and shares nothing
 */
#include "async_copy.h"
#include "gemm_places.h"
#include "warp.h"

#ifndef SIZED
#define SIZED 0
#define MATRICES 1
#define MMA 0
#define TI 2
#define TJ 4
#define TEAMI 4
#define TEAMJ 2
#define CHUNK 1
#define DEPTH 4
#define STAGES 2
#define WIDTH 2
#define AWIDE 1
#define BWIDE 1
#define CWIDE 1
#define ACOLUMNS 0
#define BCOLUMNS 0
#define APITCH 12
#define BPITCH 12
#define AOWN 1
#define BOWN 1
#define ACONJ 0
#define BCONJ 0
#define BETA 1
#define CSTAGED 0
#define CPITCH 9
#endif
#if !SIZED
#define M (int)m
#define N (int)n
#define K (int)k
#endif

#define VECTOR (WIDTH / CLA_PARTS) /* elements in 16 bytes */
typedef CLA_PASTE(CLA_REAL, WIDTH) wide;
CLA_INLINE void read_wide(CLA_REAL *to, CLA_LOCAL const CLA_REAL *from)
{
    CLA_PASTE(vstore, WIDTH)(*(CLA_LOCAL const wide *)from, 0, to);
}

#if MMA
#include "mma.h"
#ifndef CLA_MMA
#error "matrix units are those of NVIDIA's GPUs"
#endif
#define TEAM (32 * TEAMI * TEAMJ)
#define ROWS (8 * TI * TEAMI) /* of a block of C */
#define COLUMNS (8 * TJ * TEAMJ)
#else
#define TEAM (TEAMI * TEAMJ)
#define ROWS (TI * TEAMI)
#define COLUMNS (TJ * TEAMJ)
#endif
#if SIZED
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define A_ROWS LEAST(M, ROWS) /* in local memory */
#define B_COLUMNS LEAST(N, COLUMNS)
#else
#define A_ROWS ROWS
#define B_COLUMNS COLUMNS
#endif
#define A_SIZE ((ACOLUMNS ? DEPTH : A_ROWS) * APITCH * CLA_PARTS)
#define B_SIZE ((BCOLUMNS ? B_COLUMNS : DEPTH) * BPITCH * CLA_PARTS)
#define AB_SIZE (STAGES * ((AOWN ? MATRICES : 1) * A_SIZE + (BOWN ? MATRICES : 1) * B_SIZE))
#define C_SIZE (A_ROWS * CPITCH * CLA_PARTS)
#define LOCAL_SIZE (CSTAGED && MATRICES * C_SIZE > AB_SIZE ? MATRICES * C_SIZE : AB_SIZE)
#define GROUP (MATRICES * TEAM)
#define OF_TEAM(own, stage) ((stage) * ((own) ? MATRICES : 1) + ((own) ? team : 0)) /* which is its part in local memory */

/* Elements of a line in local memory that are read, of so many: for tiles, 16 bytes at a time */
#define READ_OF(length) (MMA ? (length) : ((length) + VECTOR - 1) / VECTOR * VECTOR)

#if STAGES > 1 /* during products, which need registers */
#define COPIES CLA_ROLLED
#else
#define COPIES CLA_UNROLL_SOME
#endif
/* Begins copies of lines of A or B of so many elements, of which those that are left are there; others are 0. */
#define COPY_LINES(A, to, from, stride, next, lines, length, lines_left, left) \
    { \
        const int each = READ_OF(length) * CLA_PARTS / A##WIDE; \
        COPIES for (int e = A##OWN ? t : id; e < (lines) * each; e += A##OWN ? TEAM : GROUP) { \
            const int line = e / each, i = e % each * A##WIDE; \
            CLA_LOCAL CLA_REAL *target = to + (line * A##PITCH * CLA_PARTS + i); \
            if (line < (lines_left) && i < (left) * CLA_PARTS) \
                cla_copy_numbers(target, \
                                 from + line * (stride) + \
                                     (A##WIDE > CLA_PARTS ? i : i / CLA_PARTS * (next) + i % CLA_PARTS), \
                                 A##WIDE); \
            else \
                for (int u = 0; u < A##WIDE; u++) target[u] = 0; \
        } \
    }
#define COPY_A(to, from, left) \
    if (ACOLUMNS) COPY_LINES(A, (to), (from), ac, ar, DEPTH, A_ROWS, left, M - i0) \
    else COPY_LINES(A, (to), (from), ar, ac, A_ROWS, DEPTH, M - i0, left)
#define COPY_B(to, from, left) \
    if (BCOLUMNS) COPY_LINES(B, (to), (from), bc, br, B_COLUMNS, DEPTH, N - j0, left) \
    else COPY_LINES(B, (to), (from), br, bc, DEPTH, B_COLUMNS, left, N - j0)

#if MMA
/* Row i and column j of those that a work-item has of C, and whether neighbours are its own */
#define ROW(i) ((ti * TI + (i)) * 8 + lane / 4)
#define COLUMN(j) ((tj * TJ + (j) / 2) * 8 + lane % 4 * 2 + (j) % 2)
#define OWN_COLUMNS (2 * TJ)
#define RUNS 1
#if CLA_COMPLEX
#define ELEMENT(i, j) cla_lane_of(c[0][i][(j) / 2][(j) % 2], c[1][i][(j) / 2][(j) % 2])
#else
#define ELEMENT(i, j) c[0][i][(j) / 2][(j) % 2]
#endif
#define CLEAR \
    CLA_UNROLL for (int p = 0; p < CLA_PARTS; p++) \
        CLA_UNROLL for (int i = 0; i < TI; i++) \
            CLA_UNROLL for (int j = 0; j < TJ; j++) c[p][i][j][0] = c[p][i][j][1] = 0;
#define B_RE(j) b[0][j]
#define B_IM(j) b[CLA_COMPLEX][j]
/* c + A B for what is in local memory */
#define MULTIPLY(a_of, b_of) \
    CLA_ROLLED for (int k0 = 0; k0 < DEPTH; k0 += 4 * CHUNK) { \
        CLA_REAL a[CLA_PARTS][TI][CHUNK], b[CLA_PARTS][TJ][CHUNK]; \
        CLA_UNROLL for (int s = 0; s < CHUNK; s++) { \
            const int x = k0 + s * 4 + lane % 4; \
            CLA_UNROLL for (int i = 0; i < TI; i++) { \
                const int row = min(ROW(i), A_ROWS - 1); \
                CLA_LOCAL const CLA_REAL *p = a_of + (ACOLUMNS ? x * APITCH + row : row * APITCH + x) * CLA_PARTS; \
                a[0][i][s] = p[0]; \
                if (CLA_COMPLEX) a[CLA_PARTS - 1][i][s] = ACONJ ? -p[CLA_PARTS - 1] : p[CLA_PARTS - 1]; \
            } \
            CLA_UNROLL for (int j = 0; j < TJ; j++) { \
                const int column = min((tj * TJ + j) * 8 + lane / 4, B_COLUMNS - 1); \
                CLA_LOCAL const CLA_REAL *p = b_of + (BCOLUMNS ? column * BPITCH + x : x * BPITCH + column) * CLA_PARTS; \
                b[0][j][s] = p[0]; \
                if (CLA_COMPLEX) b[CLA_PARTS - 1][j][s] = BCONJ ? -p[CLA_PARTS - 1] : p[CLA_PARTS - 1]; \
            } \
        } \
        CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[0], a[0], B_RE) \
        if (CLA_COMPLEX) { \
            CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[CLA_PARTS - 1], a[0], B_IM) \
            CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[CLA_PARTS - 1], a[CLA_PARTS - 1], B_RE) \
            CLA_UNROLL for (int i = 0; i < TI; i++) \
                CLA_UNROLL for (int s = 0; s < CHUNK; s++) a[CLA_PARTS - 1][i][s] = -a[CLA_PARTS - 1][i][s]; \
            CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[0], a[CLA_PARTS - 1], B_IM) \
        } \
    }
#else
#define ROW(i) (ACOLUMNS ? ((i) / VECTOR * TEAMI + ti) * VECTOR + (i) % VECTOR : (i) * TEAMI + ti)
#define COLUMN(j) (BCOLUMNS ? (j) * TEAMJ + tj : ((j) / VECTOR * TEAMJ + tj) * VECTOR + (j) % VECTOR)
#define OWN_COLUMNS TJ
#define RUNS (!BCOLUMNS)
#define ELEMENT(i, j) c[i][j]
#define CLEAR \
    CLA_UNROLL for (int i = 0; i < TI; i++) \
        CLA_UNROLL for (int j = 0; j < TJ; j++) c[i][j] = cla_lane_real(0);
/* Lines in local memory are read 16 bytes at a time, along columns of A or rows of B, or along the rows or columns of C:
 * VECTOR columns of A, and rows of B, are in registers at a time. */
#define PART_OF(a, along, n, i, u) \
    cla_lane_of(a[((along) ? (i) * VECTOR + (u) : (u) * (n) + (i)) * CLA_PARTS], \
                a[((along) ? (i) * VECTOR + (u) : (u) * (n) + (i)) * CLA_PARTS + CLA_PARTS - 1])
#define READ(a, of, along, n, LINE, last, pitch) \
    if (along) { \
        CLA_UNROLL for (int i = 0; i < (n); i++) \
            read_wide(a + i * WIDTH, of + (min(LINE(i), (last) - 1) * (pitch) + k0) * CLA_PARTS); \
    } else { \
        CLA_UNROLL for (int u = 0; u < VECTOR; u++) \
            CLA_UNROLL for (int i = 0; i < (n) / VECTOR; i++) \
                read_wide(a + (u * (n) / VECTOR + i) * WIDTH, \
                          of + ((k0 + u) * (pitch) + min(LINE(i * VECTOR), READ_OF(last) - VECTOR)) * CLA_PARTS); \
    }
#define MULTIPLY(a_of, b_of) \
    CLA_ROLLED for (int k0 = 0; k0 < DEPTH; k0 += VECTOR) { \
        CLA_REAL a[TI * WIDTH], b[TJ * WIDTH]; \
        READ(a, a_of, !ACOLUMNS, TI, ROW, A_ROWS, APITCH) \
        READ(b, b_of, BCOLUMNS, TJ, COLUMN, B_COLUMNS, BPITCH) \
        CLA_UNROLL for (int u = 0; u < VECTOR; u++) \
            CLA_UNROLL for (int i = 0; i < TI; i++) \
                CLA_UNROLL for (int j = 0; j < TJ; j++) \
                    c[i][j] = cla_lane_fma(CLA_CONJUGATED(ACONJ, PART_OF(a, !ACOLUMNS, TI, i, u)), \
                                           CLA_CONJUGATED(BCONJ, PART_OF(b, BCOLUMNS, TJ, j, u)), c[i][j]); \
    }
#endif

/* Elements of C that are moved at a time */
#if CWIDE == WIDTH && RUNS
#define RUN VECTOR
#define GET_RUN(x, place) CLA_PASTE(vstore, WIDTH)(*(__global const wide *)(place), 0, x)
#define PUT_RUN(place, x) *(__global wide *)(place) = CLA_PASTE(vload, WIDTH)(0, x)
#else
#define RUN 1
#define GET_RUN(x, place) CLA_UNROLL for (int u = 0; u < CLA_PARTS; u++) x[u] = (place)[u]
#define PUT_RUN(place, x) CLA_UNROLL for (int u = 0; u < CLA_PARTS; u++) (place)[u] = x[u]
#endif

__kernel CLA_GROUP_OF(GROUP) void gemm_blocks(
    long nm, long m, long n, long k, CLA_SCALAR(alpha), CLA_SCALAR(beta),
    __global const CLA_REAL *restrict A, long a0, long astep, long ar, long ac,
    __global const CLA_REAL *restrict B, long b0, long bstep, long br, long bc,
    __global CLA_REAL *restrict C, long c0, long cstep, long cr, long cc CLA_PLACES_ARGUMENT)
{
    __local CLA_REAL held[LOCAL_SIZE] __attribute__((aligned(16)));
    CLA_LOCAL CLA_REAL *const all_of_a = held, *const all_of_b = held + STAGES * (AOWN ? MATRICES : 1) * A_SIZE;
    const int id = get_local_id(0), t = id % TEAM, team = id / TEAM;
#if MMA
    const int lane = t % 32, tj = t / 32 % TEAMJ, ti = t / 32 / TEAMJ;
    CLA_REAL c[CLA_PARTS][TI][TJ][2];
#else
    /* Reads of 16 bytes take half the time where work-items t and t ^ 1, or t and t ^ 2, read the same. */
    const int pairs = TEAMI % 2 == 0, ti = pairs ? t / (2 * TEAMJ) * 2 + t % 2 : t / TEAMJ;
    const int tj = pairs ? t / 2 % TEAMJ : t % TEAMJ;
    cla_lane c[TI][TJ];
#endif
#if SIZED
    const int i0 = 0, j0 = 0;
    const long q = get_group_id(0) * (long)MATRICES + team;
#else
    const int across = (N + COLUMNS - 1) / COLUMNS, blocks = (M + ROWS - 1) / ROWS * across;
    const long q = (long)get_group_id(0) / blocks;
    const int block = (int)CLA_REMAINDER((long)get_group_id(0), blocks);
    const int i0 = block / across * ROWS, j0 = CLA_REMAINDER(block, across) * COLUMNS;
#endif
    const long given = min(q, nm - 1); /* whose numbers it computes with: the last where it has no matrix */
    A += CLA_BEGIN(0, a0, given, astep) + i0 * ar;
    B += CLA_BEGIN(1, b0, given, bstep) + j0 * bc;
    CLEAR
#if STAGES > 1
    int copied = 0;       /* columns of A */
    int to = 0, here = 0; /* stages: where the next are copied, and where those are that are multiplied */
#define COPY \
    { \
        if (copied < K) { \
            COPY_A(all_of_a + OF_TEAM(AOWN, to) * A_SIZE, A + copied * ac, K - copied) \
            COPY_B(all_of_b + OF_TEAM(BOWN, to) * B_SIZE, B + copied * br, K - copied) \
        } \
        cla_copies_commit(); \
        copied += DEPTH; \
        to = to + 1 == STAGES ? 0 : to + 1; \
    }
    for (int s = 1; s < STAGES; s++) COPY
    for (int first = 0; first < K; first += DEPTH) {
        CLA_COPIES_WAIT_BUT(STAGES - 2);
        CLA_TOGETHER
        COPY
        MULTIPLY((all_of_a + OF_TEAM(AOWN, here) * A_SIZE), (all_of_b + OF_TEAM(BOWN, here) * B_SIZE))
        here = here + 1 == STAGES ? 0 : here + 1;
    }
#else
    COPY_A(all_of_a + OF_TEAM(AOWN, 0) * A_SIZE, A, K)
    COPY_B(all_of_b + OF_TEAM(BOWN, 0) * B_SIZE, B, K)
    cla_copies_wait();
    CLA_TOGETHER
    MULTIPLY((all_of_a + OF_TEAM(AOWN, 0) * A_SIZE), (all_of_b + OF_TEAM(BOWN, 0) * B_SIZE))
#endif
    C += CLA_BEGIN(2, c0, given, cstep) + i0 * cr + j0 * cc;
#if CSTAGED
    CLA_LOCAL cla_lane *c_of = (CLA_LOCAL cla_lane *)held + team * (A_ROWS * CPITCH);
    CLA_TOGETHER
    CLA_UNROLL for (int i = 0; i < TI; i++)
        CLA_UNROLL for (int j = 0; j < OWN_COLUMNS; j++) {
            const cla_lane x = ELEMENT(i, j);
            if (ROW(i) < A_ROWS && COLUMN(j) < B_COLUMNS) c_of[ROW(i) * CPITCH + COLUMN(j)] = x;
        }
    CLA_TOGETHER
    CLA_UNROLL_SOME for (int e = t; e < A_ROWS * B_COLUMNS; e += TEAM) {
        const int i = e / B_COLUMNS, j = e % B_COLUMNS;
        if (q < nm && i < M - i0 && j < N - j0) {
            __global CLA_REAL *place = C + i * cr + j * cc;
            cla_lane x = c_of[i * CPITCH + j];
            if (K) x = cla_lane_scale(CLA_VALUE(alpha), x);
#if BETA
            const cla_lane old = cla_lane_load_apart(place, 0, 1);
            x = K ? cla_added(x, CLA_VALUE(beta), old) : cla_lane_scale(CLA_VALUE(beta), old);
#endif
            cla_lane_store_apart(place, 0, 1, x);
        }
    }
#else
    CLA_UNROLL for (int i = 0; i < TI; i++)
        CLA_UNROLL for (int j = 0; j < OWN_COLUMNS; j += RUN) {
            CLA_REAL x[RUN * CLA_PARTS];
            CLA_UNROLL for (int u = 0; u < RUN; u++) {
                const cla_lane e = K ? cla_lane_scale(CLA_VALUE(alpha), ELEMENT(i, j + u)) : ELEMENT(i, j + u);
                x[u * CLA_PARTS + CLA_PARTS - 1] = cla_lane_im(e);
                x[u * CLA_PARTS] = cla_lane_re(e);
            }
            if (q < nm && ROW(i) < M - i0 && COLUMN(j) < N - j0) {
                __global CLA_REAL *place = C + ROW(i) * cr + COLUMN(j) * cc;
#if BETA
                CLA_REAL old[RUN * CLA_PARTS];
                GET_RUN(old, place);
                CLA_UNROLL for (int u = 0; u < RUN; u++) {
                    const cla_lane y = cla_lane_of(old[u * CLA_PARTS], old[u * CLA_PARTS + CLA_PARTS - 1]);
                    const cla_lane e = cla_lane_of(x[u * CLA_PARTS], x[u * CLA_PARTS + CLA_PARTS - 1]);
                    const cla_lane z = K ? cla_added(e, CLA_VALUE(beta), y) : cla_lane_scale(CLA_VALUE(beta), y);
                    x[u * CLA_PARTS + CLA_PARTS - 1] = cla_lane_im(z);
                    x[u * CLA_PARTS] = cla_lane_re(z);
                }
#endif
                PUT_RUN(place, x);
            }
        }
#endif
}
