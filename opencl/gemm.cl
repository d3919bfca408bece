/* gemm: C <- alpha A B + beta C for one lane (pack level) and for a batch (define GEMM_BATCH).
 *
 * A is m x k, B k x n, C m x n; transposes are strides, conjugates a flag of the matrix (lane.h).
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V]; one work-item computes one lane of C. ACOMMON or
 * BCOMMON, 1: A or B is one ordinary matrix for all of them, at A[a0] or B[b0].
 */
#ifndef CLA_GEMM_CL
#define CLA_GEMM_CL

#include "async_copy.h"
#include "tile.h"

/* As BLAS: beta = 0 does not read C, alpha = 0 does not read A and B. C overlaps neither A nor B. */
CLA_INLINE void cla_gemm(int m, int n, int k, cla_lane alpha, cla_matrix A, cla_matrix B, cla_lane beta, cla_matrix C)
{
    if (cla_lane_is_zero(alpha)) k = 0;
    for (int i = 0; i < m; i += CLA_TILE)
        for (int j = 0; j < n; j += CLA_COLS) {
            cla_tile c = cla_tile_multiply(cla_tile_zero(), A, i, m, B, j, n, k);
            c = cla_tile_combine(alpha, c, beta, C, i, m, j, n);
            cla_tile_store(c, C, i, m, j, n);
        }
}

#ifdef GEMM_BATCH
#include "known.h"

/* cconj is 0: C is as it is */
__kernel void gemm_batch(long lanes, long nm, long m, long n, long k, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                         CLA_OPERAND(const CLA_REAL *restrict A, a), CLA_OPERAND(const CLA_REAL *restrict B, b),
                         CLA_OPERAND(CLA_REAL *restrict C, c))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_gemm(m, n, k, CLA_VALUE(alpha), CLA_MATRIX_OF(ACOMMON, A, a, q, aconj), CLA_MATRIX_OF(BCOMMON, B, b, q, bconj),
             CLA_VALUE(beta), CLA_MATRIX(C, c, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define M, N, K and, in numbers, ARS, ACS, BRS, BCS,
 * CRS, CCS; ACONJ and BCONJ, 1 to conjugate; ALPHA, 0 if alpha is 1, and BETA, 0 if beta is 0, else 1. Tunables:
 *
 * GEMM_ITEM  one work-item a matrix: all of B in its registers, the rows of A and C pass by.
 *   GROUP    work-items of a work-group
 * GEMM_TEAM  one work-group for LANES matrices of a pack: A and B go through local memory, DEPTH columns of A and rows
 *            of B at a time; a work-item computes a tile of C.
 *   LANES    matrices of a work-group, a divisor of V
 *   TI, TJ   rows and columns of a tile; a work-item's rows are neighbours, its columns are TEAMJ apart, so that the
 *            work-items of a warp read different banks
 *   DEPTH    columns of A in local memory
 *   AHEAD    1: loads of the next DEPTH columns are under way during the products; 2: and the loop is written out;
 *            3: those of the next two times DEPTH go to other parts of local memory, past registers, where the device
 *            has such copies (async_copy.h)
 *   ROUNDS   how often LANES matrices a work-group takes on, where there are many: the first loads of the next are
 *            under way during the products of the last
 * GEMM_MMA   likewise on the matrix units of NVIDIA's GPUs from compute capability 8.0 on, of doubles; others refuse it.
 *            A warp computes blocks of 8 x 8 elements of a matrix.
 *   LANES, DEPTH, AHEAD, ROUNDS   as above; DEPTH is a multiple of 4, AHEAD at most 2
 *   WARPS    warps of a matrix: each has every WARPS-th row of blocks of C
 *   TALL     of mma.h
 */
#if defined(GEMM_ITEM) || defined(GEMM_TEAM) || defined(GEMM_MMA)
#include "known.h"
#ifndef DEPTH
#define TI 2
#define TJ 2
#define DEPTH 4
#define AHEAD 1
#define ROUNDS 1
#define WARPS 1
#define TALL 1
#endif

#define A_AT(l, i, k) cla_lane_load_of(ACOMMON, 0, A, l, (i) * ARS + (k) * ACS) /* in lane l from the first */
#define B_AT(l, k, j) cla_lane_load_of(BCOMMON, 0, B, l, (k) * BRS + (j) * BCS)
#define C_AT(i, j) ((i) * CRS + (j) * CCS)
#define CONJUGATED(flag, a) ((flag) ? cla_lane_conj(a) : (a))
#define SCALE(b) (ALPHA ? cla_lane_scale(CLA_VALUE(alpha), b) : (b)) /* alpha goes to B */
#endif

#ifdef GEMM_ITEM
__kernel CLA_GROUP_OF(GROUP) void gemm_item(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                            __global const CLA_REAL *restrict A, long a0, long aps,
                                            __global const CLA_REAL *restrict B, long b0, long bps,
                                            __global CLA_REAL *restrict C, long c0, long cps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    A += a0 + (ACOMMON ? 0 : cla_lane_place(q, aps));
    B += b0 + (BCOMMON ? 0 : cla_lane_place(q, bps));
    C += c0 + cla_lane_place(q, cps);
    cla_lane b[K][N];
    CLA_UNROLL for (int k = 0; k < K; k++)
        CLA_UNROLL for (int j = 0; j < N; j++) b[k][j] = SCALE(CONJUGATED(BCONJ, B_AT(0, k, j)));
    CLA_UNROLL for (int i = 0; i < M; i++) {
        cla_lane a[K], c[N];
        CLA_UNROLL for (int k = 0; k < K; k++) a[k] = CONJUGATED(ACONJ, A_AT(0, i, k));
        CLA_UNROLL for (int j = 0; j < N; j++)
            c[j] = BETA ? cla_lane_scale(CLA_VALUE(beta), cla_lane_load(C, C_AT(i, j))) : cla_lane_real(0);
        CLA_UNROLL for (int k = 0; k < K; k++)
            CLA_UNROLL for (int j = 0; j < N; j++) c[j] = cla_lane_fma(a[k], b[k][j], c[j]);
        CLA_UNROLL for (int j = 0; j < N; j++) cla_lane_store(C, C_AT(i, j), c[j]);
    }
}
#endif

#ifdef GEMM_TEAM
#define COPIES (AHEAD == 3)
#define PARTS (COPIES ? 3 : 1) /* of local memory */
#define NEXT_PART(p) p = p == parts + (PARTS - 1) * PART_SIZE ? parts : p + PART_SIZE;
/* Begins copies to the next part of local memory: of the next columns of A, or of the matrices of the next round. */
#define COPY \
    { \
        if (q_next < lanes) { FETCH(k_next) } \
        cla_copies_commit(); \
        NEXT_PART(copied) \
        k_next += DEPTH; \
        if (k_next >= K) { \
            k_next = 0; \
            q_next += step; \
            TURN_TO(q_next) \
        } \
    }
/* Each work-item moves a share of A and B to local memory. Without copies, an element waits in a register:
 *   FETCH_A(u, ...)  loads the u-th element of the share, or zero where the matrix has none (not `within`)
 *   NEXT_A(to, u)    is that element
 *   PUT              stores the share in local memory, conjugated or scaled as it will be multiplied
 * With copies (AHEAD 3) the element goes to local memory, `to`, at once, and PUT only rewrites what has to change. These
 * are macros since a_next and b_next are private arrays, which stay in registers only where indices are numbers. */
#if COPIES
#define NEXT_A(to, u) (*(to))
#define NEXT_B(to, u) (*(to))
#define FETCH_A(u, to, within, l, i, k) \
    { \
        if (within) cla_copy_of(to, ACOMMON, A, l, (i) * ARS + (k) * ACS); \
        else *(to) = cla_lane_real(0); \
    }
#define FETCH_B(u, to, within, l, k, j) \
    { \
        if (within) cla_copy_of(to, BCOMMON, B, l, (k) * BRS + (j) * BCS); \
        else *(to) = cla_lane_real(0); \
    }
#else
#define NEXT_A(to, u) a_next[u]
#define NEXT_B(to, u) b_next[u]
#define FETCH_A(u, to, within, l, i, k) a_next[u] = (within) ? A_AT(l, i, k) : cla_lane_real(0)
#define FETCH_B(u, to, within, l, k, j) b_next[u] = (within) ? B_AT(l, k, j) : cla_lane_real(0)
#endif
#define PUT(share, mine, changes, to, value) \
    if (!COPIES || (changes)) CLA_UNROLL for (int u = 0; u < share; u++) \
            if (mine) to = value;

#define TEAMI ((M + TI - 1) / TI)
#define TEAMJ ((N + TJ - 1) / TJ)
#define MEMBERS (TEAMI * TEAMJ)
#define WORK_ITEMS (LANES * MEMBERS)
#define A_SIZE (M * DEPTH * LANES) /* what is in local memory of A and of B, and a work-item's share in moving it */
#define B_SIZE (DEPTH * N * LANES)
#define A_SHARE ((A_SIZE + WORK_ITEMS - 1) / WORK_ITEMS)
#define B_SHARE ((B_SIZE + WORK_ITEMS - 1) / WORK_ITEMS)
#define PART_SIZE (A_SIZE + B_SIZE)
#define WHOLE (K % DEPTH == 0)

/* Whether a work-item has a u-th element to move, of `all` that the group moves */
#define HAS(u, all) (((u) + 1) * WORK_ITEMS <= (all) || (u) * WORK_ITEMS + t < (all))
/* The number of that element in its matrix, and its quotient and remainder, without a division for each u where possible */
#define NUMBER(u) ((u) * MEMBERS + f)
#define QUOTIENT(u, n) \
    (MEMBERS % (n) == 0   ? (u) * (MEMBERS / (n)) + f / (n) \
     : (n) % MEMBERS == 0 ? (u) / (((n) + MEMBERS - 1) / MEMBERS) \
                          : NUMBER(u) / (n))
#define REMAINDER(u, n) \
    (MEMBERS % (n) == 0   ? f % (n) \
     : (n) % MEMBERS == 0 ? (u) % (((n) + MEMBERS - 1) / MEMBERS) * MEMBERS + f \
                          : NUMBER(u) % (n))
#define A_FLAT (K == DEPTH && ARS == K * ACS) /* what is in local memory lies together */
#define B_FLAT (WHOLE && BRS == N * BCS)

/* Fetches this work-item's share of columns k0 to k0 + DEPTH of A, and of these rows of B; zeros past the last. */
#define FETCH(k0) \
    CLA_UNROLL for (int u = 0; u < A_SHARE; u++) { \
        const int i = A_FLAT ? 0 : QUOTIENT(u, DEPTH), k = A_FLAT ? NUMBER(u) : REMAINDER(u, DEPTH); \
        if (HAS(u, A_SIZE)) FETCH_A(u, copied + u * WORK_ITEMS + t, WHOLE || k0 + k < K, l, i, k0 + k); \
    } \
    CLA_UNROLL for (int u = 0; u < B_SHARE; u++) { \
        const int k = B_FLAT ? 0 : QUOTIENT(u, N), j = B_FLAT ? NUMBER(u) : REMAINDER(u, N); \
        if (HAS(u, B_SIZE)) FETCH_B(u, copied + A_SIZE + u * WORK_ITEMS + t, WHOLE || k0 + k < K, l, k0 + k, j); \
    }

__kernel CLA_GROUP_OF(WORK_ITEMS) void gemm_team(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                                 __global const CLA_REAL *restrict A, long a0, long aps,
                                                 __global const CLA_REAL *restrict B, long b0, long bps,
                                                 __global CLA_REAL *restrict C, long c0, long cps)
{
    __local cla_lane parts[PARTS * PART_SIZE];
    CLA_LOCAL cla_lane *here = parts + (PARTS - 1) * PART_SIZE, *copied = parts; /* and where the next copies go */
    const int t = get_local_id(0), l = t % LANES, f = t / LANES, tj = f % TEAMJ, ti = f / TEAMJ;
    __global const CLA_REAL *const all_of_a = A + a0, *const all_of_b = B + b0;
    __global CLA_REAL *const all_of_c = C + c0 + l;
    const long step = get_num_groups(0) * (long)LANES;
    cla_lane c[TI][TJ];
#if !COPIES
    cla_lane a_next[A_SHARE], b_next[B_SHARE];
#endif
#define ROW(i) (ti * TI + (i))
#define COLUMN(j) ((j) * TEAMJ + tj)
#define IN_C(i, j) ((M % TI == 0 || ROW(i) < M) && (N % TJ == 0 || COLUMN(j) < N))
#define TURN_TO(q) \
    A = all_of_a + (ACOMMON ? 0 : (q) / CLA_VLEN * aps + CLA_GROUP_LANE(q)); \
    B = all_of_b + (BCOMMON ? 0 : (q) / CLA_VLEN * bps + CLA_GROUP_LANE(q));
    long q = get_group_id(0) * (long)LANES;
    TURN_TO(q)
#if COPIES
    long q_next = q;
    int k_next = 0;
    COPY
    COPY
#else
    if (AHEAD) { FETCH(0) }
#endif
#if ROUNDS > 1
    for (; q < lanes; q += step)
#endif
    {
        C = all_of_c + q / CLA_VLEN * cps + CLA_GROUP_LANE(q);
        CLA_UNROLL for (int i = 0; i < TI; i++)
            CLA_UNROLL for (int j = 0; j < TJ; j++)
                c[i][j] = BETA ? cla_lane_scale(CLA_VALUE(beta),
                                                cla_lane_load_if(IN_C(i, j), C, C_AT(ROW(i), COLUMN(j))))
                               : cla_lane_real(0);
#if AHEAD == 2
        CLA_UNROLL
#endif
        for (int k0 = 0; k0 < K; k0 += DEPTH) {
#if COPIES
            CLA_COPIES_WAIT_BUT(1);
            NEXT_PART(here)
#else
            barrier(CLK_LOCAL_MEM_FENCE);
            if (!AHEAD) { FETCH(k0) }
#endif
            PUT(A_SHARE, HAS(u, A_SIZE), ACONJ && CLA_COMPLEX,
                here[u * WORK_ITEMS + t], CONJUGATED(ACONJ, NEXT_A(here + u * WORK_ITEMS + t, u)))
            PUT(B_SHARE, HAS(u, B_SIZE), ALPHA || BCONJ && CLA_COMPLEX,
                here[A_SIZE + u * WORK_ITEMS + t],
                SCALE(CONJUGATED(BCONJ, NEXT_B(here + A_SIZE + u * WORK_ITEMS + t, u))))
            barrier(CLK_LOCAL_MEM_FENCE);
#if COPIES
            COPY
#else
            int next = k0 + DEPTH;
            if (ROUNDS > 1 && next >= K && q + step < lanes) {
                TURN_TO(q + step)
                next = 0;
            }
            if (AHEAD && next < K) { FETCH(next) }
#endif
            CLA_UNROLL for (int k = 0; k < DEPTH; k++) {
                cla_lane a[TI], b[TJ];
                CLA_UNROLL for (int i = 0; i < TI; i++) a[i] = here[(min(ROW(i), M - 1) * DEPTH + k) * LANES + l];
                CLA_UNROLL for (int j = 0; j < TJ; j++)
                    b[j] = here[A_SIZE + (k * N + min(COLUMN(j), N - 1)) * LANES + l];
                CLA_UNROLL for (int i = 0; i < TI; i++)
                    CLA_UNROLL for (int j = 0; j < TJ; j++) c[i][j] = cla_lane_fma(a[i], b[j], c[i][j]);
            }
        }
        CLA_UNROLL for (int i = 0; i < TI; i++)
            CLA_UNROLL for (int j = 0; j < TJ; j++)
                if (IN_C(i, j)) cla_lane_store(C, C_AT(ROW(i), COLUMN(j)), c[i][j]);
    }
}
#endif

#ifdef GEMM_MMA
#include "mma.h"
#ifndef CLA_MMA
#error "matrix units are those of NVIDIA's GPUs"
#endif

#define WORK_ITEMS (32 * WARPS * LANES)
#define ROW_BLOCKS ((M + 7) / 8)
#define COLUMN_BLOCKS ((N + 7) / 8)
#define STEPS (DEPTH / 4)
#define B_RE(j) b[0][j]
#define B_IM(j) b[1][j]
#define MULTIPLY(c, a, b) CLA_MMA_BLOCKS(ROW_SHARE, COLUMN_BLOCKS, 1, c, a, b)
#if CLA_COMPLEX
#define EACH_PART(a, i, e) a[0][i][0] = (e).x, a[1][i][0] = (e).y;
#define ELEMENT(i, j, h) cla_lane_of(c[0][i][j][h], c[1][i][j][h])
#else
#define EACH_PART(a, i, e) a[0][i][0] = e;
#define ELEMENT(i, j, h) c[0][i][j][h]
#endif
#define ROW_SHARE ((ROW_BLOCKS + WARPS - 1) / WARPS) /* in blocks, for each warp */
#define COLUMN_SHARE ((COLUMN_BLOCKS + WARPS - 1) / WARPS)
#define A_SHARE (ROW_SHARE * STEPS)
#define B_SHARE (COLUMN_SHARE * STEPS)
#define AB_SIZE (STEPS * (ROW_BLOCKS + COLUMN_BLOCKS))
#define AT_ONCE (AB_SIZE < 2 * ROW_BLOCKS ? 1 : AB_SIZE / (2 * ROW_BLOCKS))
#define WIDTH (AT_ONCE > COLUMN_BLOCKS ? COLUMN_BLOCKS : AT_ONCE) /* blocks of a row of C in local memory at once */
#define C_SHARE (ROW_SHARE * WIDTH * 2)
/* A matrix in local memory is halves of blocks, 32 elements each, in the order of the work-items of a warp. The padding
 * is for what moves them: neighbours are lanes of an element. */
#define MATRIX_SIZE \
    (32 * (AB_SIZE < 2 * ROW_BLOCKS ? 2 * ROW_BLOCKS : AB_SIZE) + (LANES * CLA_PARTS < 16 ? 16 / CLA_PARTS / LANES : 1))
#define A_PLACE(row, step) (((row) * STEPS + (step)) * 32)
#define B_PLACE(column, step) (((column) * STEPS + (step)) * 32 + A_PLACE(ROW_BLOCKS, 0))
#define C_PLACE(row, column, h) ((((row) * WIDTH + (column)) * 2 + (h)) * 32)
/* Whether there is the u-th block of a work-item's share of `all` */
#define MINE(u, all) ((all) % WARPS == 0 || (u) * WARPS + part < (all))
#define WITHIN(i, all) ((all) % 8 == 0 || (i) < (all))

/* Where the u-th element of a work-item's share of A or B goes */
#define A_OF_SHARE(u) A_PLACE((u) / STEPS * WARPS + part, (u) % STEPS)
#define B_OF_SHARE(u) B_PLACE((u) / STEPS * WARPS + part, (u) % STEPS)
#define FETCH(k0) \
    CLA_UNROLL for (int u = 0; u < A_SHARE; u++) { \
        const int i = u / STEPS * WARPS * 8 + part * 8 + f / 4, k = (k0) + u % STEPS * 4 + f % 4; \
        if (MINE(u / STEPS, ROW_BLOCKS)) \
            a_next[u] = WITHIN(i, M) && (WHOLE || k < K) ? A_AT(l, i, k) : cla_lane_real(0); \
    } \
    CLA_UNROLL for (int u = 0; u < B_SHARE; u++) { \
        const int j = u / STEPS * WARPS * 8 + part * 8 + f / 4, k = (k0) + u % STEPS * 4 + f % 4; \
        if (MINE(u / STEPS, COLUMN_BLOCKS)) \
            b_next[u] = WITHIN(j, N) && (WHOLE || k < K) ? B_AT(l, k, j) : cla_lane_real(0); \
    }
#define WHOLE (K % DEPTH == 0)
/* Where the u-th element is of this work-item's share of columns of C from block j0 on */
#define C_ROW(u) ((u) / 2 / WIDTH * WARPS * 8 + part * 8 + f / 4)
#define C_COLUMN(u, j0) (((j0) + (u) / 2 % WIDTH) * 8 + f % 4 * 2 + (u) % 2)
#define HAS_C(u, j0) \
    ((j0) + (u) / 2 % WIDTH < COLUMN_BLOCKS && MINE((u) / 2 / WIDTH, ROW_BLOCKS) && WITHIN(C_ROW(u), M) && \
     WITHIN(C_COLUMN(u, j0), N))
#define FETCH_C(u, j0) \
    if (BETA && HAS_C(u, j0)) c_next[u] = cla_lane_load(C, C_AT(C_ROW(u), C_COLUMN(u, j0)));

__kernel CLA_GROUP_OF(WORK_ITEMS) void gemm_mma(long lanes, long nm, CLA_SCALAR(alpha), CLA_SCALAR(beta),
                                                __global const CLA_REAL *restrict A, long a0, long aps,
                                                __global const CLA_REAL *restrict B, long b0, long bps,
                                                __global CLA_REAL *restrict C, long c0, long cps)
{
    __local cla_lane here[LANES * MATRIX_SIZE];
    const int t = get_local_id(0);
    const int l = t % LANES, f = t / LANES % 32, part = t / LANES / 32; /* of what it moves: lane, element, and block */
    const int own = t / 32 % WARPS;                                     /* of what it computes */
    const int moved = l * MATRIX_SIZE + f, held = t / 32 / WARPS * MATRIX_SIZE + t % 32; /* where these are */
    __global const CLA_REAL *const all_of_a = A + a0, *const all_of_b = B + b0;
    __global CLA_REAL *const all_of_c = C + c0 + l;
    const long step = get_num_groups(0) * (long)LANES;
    cla_lane a_next[A_SHARE], b_next[B_SHARE], c_next[C_SHARE];
    CLA_REAL c[CLA_PARTS][ROW_SHARE][COLUMN_BLOCKS][2]; /* real and imaginary parts */
#define TURN_TO(q) \
    A = all_of_a + (ACOMMON ? 0 : (q) / CLA_VLEN * aps + CLA_GROUP_LANE(q)); \
    B = all_of_b + (BCOMMON ? 0 : (q) / CLA_VLEN * bps + CLA_GROUP_LANE(q));
    long q = get_group_id(0) * (long)LANES;
    TURN_TO(q)
    if (AHEAD) { FETCH(0) }
#if ROUNDS > 1
    for (; q < lanes; q += step)
#endif
    {
        C = all_of_c + q / CLA_VLEN * cps + CLA_GROUP_LANE(q);
        CLA_UNROLL for (int p = 0; p < CLA_PARTS; p++)
            CLA_UNROLL for (int i = 0; i < ROW_SHARE; i++)
                CLA_UNROLL for (int j = 0; j < COLUMN_BLOCKS; j++) c[p][i][j][0] = c[p][i][j][1] = 0;
#if AHEAD == 2
        CLA_UNROLL
#endif
        for (int k0 = 0; k0 < K; k0 += DEPTH) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (!AHEAD) { FETCH(k0) }
            CLA_UNROLL for (int u = 0; u < A_SHARE; u++)
                if (MINE(u / STEPS, ROW_BLOCKS)) here[moved + A_OF_SHARE(u)] = CONJUGATED(ACONJ, a_next[u]);
            CLA_UNROLL for (int u = 0; u < B_SHARE; u++)
                if (MINE(u / STEPS, COLUMN_BLOCKS)) here[moved + B_OF_SHARE(u)] = CONJUGATED(BCONJ, b_next[u]);
            barrier(CLK_LOCAL_MEM_FENCE);
            int next = k0 + DEPTH;
            if (next >= K) {
                CLA_UNROLL for (int u = 0; u < C_SHARE; u++) { FETCH_C(u, 0) }
                if (ROUNDS > 1 && q + step < lanes) {
                    TURN_TO(q + step)
                    next = 0;
                }
            }
            if (AHEAD && next < K) { FETCH(next) }
            CLA_UNROLL for (int s = 0; s < STEPS; s++) {
                CLA_REAL a[CLA_PARTS][ROW_SHARE][1], b[CLA_PARTS][COLUMN_BLOCKS][1];
                CLA_UNROLL for (int i = 0; i < ROW_SHARE; i++) {
                    const cla_lane e = here[held + A_PLACE(min(i * WARPS + own, ROW_BLOCKS - 1), s)];
                    EACH_PART(a, i, e)
                }
                CLA_UNROLL for (int j = 0; j < COLUMN_BLOCKS; j++) {
                    const cla_lane e = here[held + B_PLACE(j, s)];
                    EACH_PART(b, j, e)
                }
                MULTIPLY(c[0], a[0], B_RE)
#if CLA_COMPLEX
                MULTIPLY(c[1], a[0], B_IM)
                MULTIPLY(c[1], a[1], B_RE)
                CLA_UNROLL for (int i = 0; i < ROW_SHARE; i++) a[1][i][0] = CLA_MINUS(a[1][i][0]);
                MULTIPLY(c[0], a[1], B_IM)
#endif
            }
        }
        CLA_UNROLL for (int j0 = 0; j0 < COLUMN_BLOCKS; j0 += WIDTH) {
            barrier(CLK_LOCAL_MEM_FENCE);
            CLA_UNROLL for (int i = 0; i < ROW_SHARE; i++)
                CLA_UNROLL for (int j = 0; j < WIDTH; j++)
                    CLA_UNROLL for (int h = 0; h < 2; h++)
                        if (j0 + j < COLUMN_BLOCKS && (ROW_BLOCKS % WARPS == 0 || i * WARPS + own < ROW_BLOCKS))
                            here[held + C_PLACE(i * WARPS + own, j, h)] = ELEMENT(i, j0 + j, h);
            barrier(CLK_LOCAL_MEM_FENCE);
            CLA_UNROLL for (int u = 0; u < C_SHARE; u++)
                if (HAS_C(u, j0)) {
                    cla_lane product = SCALE(here[moved + C_PLACE(u / 2 / WIDTH * WARPS + part, u / 2 % WIDTH, u % 2)]);
                    if (BETA) product = product + cla_lane_scale(CLA_VALUE(beta), c_next[u]);
                    FETCH_C(u, j0 + WIDTH)
                    cla_lane_store(C, C_AT(C_ROW(u), C_COLUMN(u, j0)), product);
                }
        }
    }
}
#endif

#endif
