/* gemm of ordinary arrays (gemm_places.h) by blocks: a work-group takes columns of A and rows of B into local memory,
 * and has blocks of C in its registers. Where k is 0 alpha is left out, and nothing is read of A and B.
 *
 * Sizes are arguments, or for SIZED, 1, the macros M, N and K: a block is then a whole matrix. Other macros:
 *
 * MATRICES   matrices of a work-group at a time, more than 1 only if SIZED
 * MMA        0: a work-item computes a tile of TI x TJ elements, and there are TEAMI x TEAMJ of them for a block.
 *            1: matrix units of NVIDIA's GPUs compute with doubles, and what has such a tile is a warp, in units of
 *            8 x 8 elements.
 * CHUNK      columns of A in registers at a time, in units of 4 for matrix units; for STAGES there are further ones, and
 *            DEPTH is a multiple of both
 * CHUNK_PARTS   numbers of type CLA_REAL in so many
 * DEPTH      columns of A in local memory at a time, a multiple of what CHUNK says
 * STAGES     how many times so many there are, the next under way during the products, also those of the blocks that
 *            follow, of which a work-group has each get_num_groups(0)-th; 1: DEPTH is K or more, and there is one
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
#include "room.h"
#include "warp.h"

#ifndef SIZED
#define SIZED 0
#define MATRICES 1
#define MMA 0
#define TI 2
#define TJ 4
#define TEAMI 4
#define TEAMJ 2
#define CHUNK 2
#define CHUNK_PARTS 2
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

#if MMA || CHUNK * CLA_PARTS == 1
#define read_chunk(to, from) *(to) = *(from)
#else
typedef CLA_PASTE(CLA_REAL, CHUNK_PARTS) chunk;
CLA_INLINE void read_chunk(CLA_REAL *to, CLA_LOCAL const CLA_REAL *from)
{
    CLA_PASTE(vstore, CHUNK_PARTS)(*(CLA_LOCAL const chunk *)from, 0, to);
}
#endif

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
#if SIZED && STAGES == 1
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
#if STAGES > 1
#define C_BEGIN AB_SIZE
#define LOCAL_SIZE (AB_SIZE + CSTAGED * MATRICES * C_SIZE)
#else
#define C_BEGIN 0
#define LOCAL_SIZE (CSTAGED && MATRICES * C_SIZE > AB_SIZE ? MATRICES * C_SIZE : AB_SIZE)
#endif
#define GROUP (MATRICES * TEAM)
#define OF_TEAM(own, stage) ((stage) * ((own) ? MATRICES : 1) + ((own) ? team : 0)) /* which is its part in local memory */

/* Line i of so many in local memory, of `all`, or the last where there is none */
#define LEAST_OF(i, lines, all) ((lines) == (all) ? (i) : min(i, (lines) - 1))

/* Elements of a line in local memory that are read, of so many: for tiles, 16 bytes at a time */
#define READ_OF(length) (MMA ? (length) : ((length) + VECTOR - 1) / VECTOR * VECTOR)

/* Begins copies of lines of A or B of so many elements, of which those that are left are there; others are 0. */
#define COPY_LINES(A, to, from, stride, next, lines, length, lines_left, left) \
    { \
        const int each = READ_OF(length) * CLA_PARTS / A##WIDE, some = A##OWN ? TEAM : GROUP, me = A##OWN ? t : id; \
        const int even = some % each == 0, first = me / each, apart = some / each; \
        __global const CLA_REAL *source = from + first * (stride); \
        const long step = apart * (stride); \
        CLA_UNROLL_SOME for (int e = me, turn = 0; e < (lines) * each; e += some, turn++) { \
            const int line = even ? first + turn * apart : e / each, i = (even ? me : e) % each * A##WIDE; \
            CLA_LOCAL CLA_REAL *target = to + (line * A##PITCH * CLA_PARTS + i); \
            if (line < (lines_left) && i < (left) * CLA_PARTS) \
                cla_copy_numbers(target, \
                                 (even ? source : from + line * (stride)) + \
                                     (A##WIDE > CLA_PARTS ? i : i / CLA_PARTS * (next) + i % CLA_PARTS), \
                                 A##WIDE); \
            else \
                for (int u = 0; u < A##WIDE; u++) target[u] = 0; \
            source += step; \
        } \
    }
#define COPY_A(to, from, left) \
    if (ACOLUMNS) COPY_LINES(A, (to), (from), ac, ar, DEPTH, A_ROWS, left, M - i_next) \
    else COPY_LINES(A, (to), (from), ar, ac, A_ROWS, DEPTH, M - i_next, left)
#define COPY_B(to, from, left) \
    if (BCOLUMNS) COPY_LINES(B, (to), (from), bc, br, B_COLUMNS, DEPTH, N - j_next, left) \
    else COPY_LINES(B, (to), (from), br, bc, DEPTH, B_COLUMNS, left, N - j_next)

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
#define STEP (4 * CHUNK)
#define OPERANDS(a, b) CLA_REAL a[CLA_PARTS][TI][CHUNK], b[CLA_PARTS][TJ][CHUNK];
#define READ(a, b, a_of, b_of, k0) \
    CLA_UNROLL for (int s = 0; s < CHUNK; s++) { \
        const int x = (k0) + s * 4 + lane % 4; \
        CLA_UNROLL for (int i = 0; i < TI; i++) { \
            const int row = LEAST_OF(ROW(i), A_ROWS, ROWS); \
            CLA_LOCAL const CLA_REAL *p = a_of + (ACOLUMNS ? x * APITCH + row : row * APITCH + x) * CLA_PARTS; \
            a[0][i][s] = p[0]; \
            if (CLA_COMPLEX) a[CLA_PARTS - 1][i][s] = ACONJ ? -p[CLA_PARTS - 1] : p[CLA_PARTS - 1]; \
        } \
        CLA_UNROLL for (int j = 0; j < TJ; j++) { \
            const int column = LEAST_OF((tj * TJ + j) * 8 + lane / 4, B_COLUMNS, COLUMNS); \
            CLA_LOCAL const CLA_REAL *p = b_of + (BCOLUMNS ? column * BPITCH + x : x * BPITCH + column) * CLA_PARTS; \
            b[0][j][s] = p[0]; \
            if (CLA_COMPLEX) b[CLA_PARTS - 1][j][s] = BCONJ ? -p[CLA_PARTS - 1] : p[CLA_PARTS - 1]; \
        } \
    }
#define b_RE(j) b[0][j] /* of arrays with that name */
#define b_IM(j) b[CLA_COMPLEX][j]
#define b_other_RE(j) b_other[0][j]
#define b_other_IM(j) b_other[CLA_COMPLEX][j]
#define MULTIPLY(a, b) \
    { \
        CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[0], a[0], b##_RE) \
        if (CLA_COMPLEX) { \
            CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[CLA_PARTS - 1], a[0], b##_IM) \
            CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[CLA_PARTS - 1], a[CLA_PARTS - 1], b##_RE) \
            CLA_UNROLL for (int i = 0; i < TI; i++) \
                CLA_UNROLL for (int s = 0; s < CHUNK; s++) a[CLA_PARTS - 1][i][s] = -a[CLA_PARTS - 1][i][s]; \
            CLA_MMA_BLOCKS(TI, TJ, CHUNK, c[0], a[CLA_PARTS - 1], b##_IM) \
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
/* Lines in local memory are read along columns of A or rows of B, CHUNK elements at a time, or along the rows or columns
 * of C, 16 bytes at a time. */
#define STEP CHUNK
#define OPERANDS(a, b) CLA_REAL a[TI * CHUNK * CLA_PARTS], b[TJ * CHUNK * CLA_PARTS];
#define PART_OF(a, along, n, i, u) \
    cla_lane_of(a[((along) ? (i) * CHUNK + (u) : (u) * (n) + (i)) * CLA_PARTS], \
                a[((along) ? (i) * CHUNK + (u) : (u) * (n) + (i)) * CLA_PARTS + CLA_PARTS - 1])
#define READ_LINES(a, of, along, n, LINE, last, all, pitch, k0) \
    if (along) { \
        CLA_UNROLL for (int i = 0; i < (n); i++) \
            read_chunk(a + i * CHUNK * CLA_PARTS, of + (LEAST_OF(LINE(i), last, all) * (pitch) + (k0)) * CLA_PARTS); \
    } else { \
        CLA_UNROLL for (int u = 0; u < CHUNK; u++) \
            CLA_UNROLL for (int i = 0; i < (n) / VECTOR; i++) { \
                const int line = READ_OF(last) == (all) ? LINE(i * VECTOR) : min(LINE(i * VECTOR), READ_OF(last) - VECTOR); \
                read_wide(a + (u * (n) / VECTOR + i) * WIDTH, of + (((k0) + u) * (pitch) + line) * CLA_PARTS); \
            } \
    }
#define READ(a, b, a_of, b_of, k0) \
    { \
        READ_LINES(a, a_of, !ACOLUMNS, TI, ROW, A_ROWS, ROWS, APITCH, k0) \
        READ_LINES(b, b_of, BCOLUMNS, TJ, COLUMN, B_COLUMNS, COLUMNS, BPITCH, k0) \
    }
#define MULTIPLY(a, b) \
    CLA_UNROLL for (int u = 0; u < CHUNK; u++) \
        CLA_UNROLL for (int i = 0; i < TI; i++) \
            CLA_UNROLL for (int j = 0; j < TJ; j++) \
                c[i][j] = cla_lane_fma(CLA_CONJUGATED(ACONJ, PART_OF(a, !ACOLUMNS, TI, i, u)), \
                                       CLA_CONJUGATED(BCONJ, PART_OF(b, BCOLUMNS, TJ, j, u)), c[i][j]);
#endif

/* x <- x + beta times what was there */
#if BETA
#define ADD_OLD(x, old) x = K ? cla_added(x, CLA_VALUE(beta), old) : cla_lane_scale(CLA_VALUE(beta), old);
#else
#define ADD_OLD(x, old)
#endif
#define AT_ONCE 4 /* elements of C that a work-item moves by way of local memory */

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
    CLA_ROOM_OF(CLA_REAL, held, LOCAL_SIZE);
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
/* The matrix of the turn-th block, that whose numbers are computed with, the last where it has none, and where the block
 * is in it. */
#if SIZED
    const long turns = (nm + MATRICES - 1) / MATRICES;
    const int i0 = 0, j0 = 0, i_next = 0, j_next = 0;
#define FIND(turn, i, j) q = (turn) * MATRICES + team;
#else
    const int across = (N + COLUMNS - 1) / COLUMNS, blocks = (M + ROWS - 1) / ROWS * across;
    const long turns = nm * blocks;
    int i0, j0, i_next, j_next;
#define FIND(turn, i, j) \
    { \
        const int block = (int)CLA_REMAINDER((turn), (long)blocks); \
        q = (turn) / blocks; \
        i = block / across * ROWS; \
        j = CLA_REMAINDER(block, across) * COLUMNS; \
    }
#endif
#define FIND_NEXT \
    { \
        long q; \
        FIND(next, i_next, j_next) \
        q = min(q, nm - 1); \
        a_next = A + CLA_BEGIN(0, a0, q, astep) + i_next * ar; \
        b_next = B + CLA_BEGIN(1, b0, q, bstep) + j_next * bc; \
    }
    __global const CLA_REAL *a_next, *b_next;
    long turn = get_group_id(0), next = turn;
    FIND_NEXT
#if STAGES > 1
    int left = K; /* columns of the next A that are not copied */
    int here = 0; /* the stage that is multiplied, or behind it the next copies go there */
#define COPY \
    { \
        if (left > 0) { \
            COPY_A(all_of_a + OF_TEAM(AOWN, here) * A_SIZE, a_next, left) \
            COPY_B(all_of_b + OF_TEAM(BOWN, here) * B_SIZE, b_next, left) \
            left -= DEPTH; \
            a_next += DEPTH * ac; \
            b_next += DEPTH * br; \
            if (left <= 0) { \
                next += get_num_groups(0); \
                if (next < turns) { \
                    left = K; \
                    FIND_NEXT \
                } \
            } \
        } \
        cla_copies_commit(); \
        here = here + 1 == STAGES ? 0 : here + 1; \
    }
/* Whether there are columns of A from that one on, or further blocks. On NVIDIA's GPUs what is read past the end, and not
 * used, costs less than the question. */
#ifdef CLA_COPY
#define ARE_THERE(column) 1
#else
#define ARE_THERE(column) ((column) < K || turn + get_num_groups(0) < turns)
#endif
#define A_HERE (all_of_a + OF_TEAM(AOWN, here) * A_SIZE)
#define B_HERE (all_of_b + OF_TEAM(BOWN, here) * B_SIZE)
    OPERANDS(a, b)
    OPERANDS(a_other, b_other)
    for (int s = 0; s < STAGES; s++) COPY
    CLA_COPIES_WAIT_BUT(STAGES - 1);
    CLA_TOGETHER
    if (K > 0) READ(a, b, A_HERE, B_HERE, 0)
    for (; turn < turns; turn += get_num_groups(0))
#endif
    {
        long q;
        FIND(turn, i0, j0)
        __global CLA_REAL *const c_of_q = C + CLA_BEGIN(2, c0, min(q, nm - 1), cstep) + i0 * cr + j0 * cc;
        CLEAR
#if STAGES > 1
        for (int first = 0; first < K; first += DEPTH) {
            CLA_ROLLED for (int k0 = 0; k0 < DEPTH; k0 += 2 * STEP) {
                READ(a_other, b_other, A_HERE, B_HERE, k0 + STEP)
                MULTIPLY(a, b)
                int next_step = k0 + 2 * STEP;
                if (next_step == DEPTH) {
                    CLA_COPIES_WAIT_BUT(STAGES - 2);
                    CLA_TOGETHER
                    COPY
                    next_step = 0;
                }
                if (next_step > 0 || ARE_THERE(first + DEPTH)) READ(a, b, A_HERE, B_HERE, next_step)
                MULTIPLY(a_other, b_other)
            }
        }
#else
        COPY_A(all_of_a + OF_TEAM(AOWN, 0) * A_SIZE, a_next, K)
        COPY_B(all_of_b + OF_TEAM(BOWN, 0) * B_SIZE, b_next, K)
        cla_copies_wait();
        CLA_TOGETHER
        CLA_LOCAL const CLA_REAL *const a_of = all_of_a + OF_TEAM(AOWN, 0) * A_SIZE;
        CLA_LOCAL const CLA_REAL *const b_of = all_of_b + OF_TEAM(BOWN, 0) * B_SIZE;
        CLA_ROLLED for (int k0 = 0; k0 < DEPTH; k0 += STEP) {
            OPERANDS(a, b)
            READ(a, b, a_of, b_of, k0)
            MULTIPLY(a, b)
        }
#endif
#if CSTAGED
        CLA_LOCAL cla_lane *staged = (CLA_LOCAL cla_lane *)(held + C_BEGIN) + team * (A_ROWS * CPITCH);
        CLA_TOGETHER
        CLA_UNROLL for (int i = 0; i < TI; i++)
            CLA_UNROLL for (int j = 0; j < OWN_COLUMNS; j++) {
                const cla_lane x = ELEMENT(i, j);
                if (ROW(i) < A_ROWS && COLUMN(j) < B_COLUMNS) staged[ROW(i) * CPITCH + COLUMN(j)] = x;
            }
        CLA_TOGETHER
/* Element e of what is moved by neighbours: `each` for its row i, column j and place */
#define EACH_STAGED(each) \
    { \
        const int e = e0 + u * TEAM + t, i = e / B_COLUMNS, j = e % B_COLUMNS; \
        if (e < A_ROWS * B_COLUMNS && q < nm && i < M - i0 && j < N - j0) { \
            __global CLA_REAL *place = c_of_q + i * cr + j * cc; \
            each \
        } \
    }
        CLA_ROLLED for (int e0 = 0; e0 < A_ROWS * B_COLUMNS; e0 += AT_ONCE * TEAM) {
#if BETA
            cla_lane old[AT_ONCE]; /* all of which are read before some are written: compilers do not know that they differ */
            CLA_UNROLL for (int u = 0; u < AT_ONCE; u++) EACH_STAGED(old[u] = cla_lane_load_apart(place, 0, 1);)
#endif
            CLA_UNROLL for (int u = 0; u < AT_ONCE; u++) EACH_STAGED(
                cla_lane x = staged[i * CPITCH + j];
                if (K) x = cla_lane_scale(CLA_VALUE(alpha), x);
                ADD_OLD(x, old[u])
                cla_lane_store_apart(place, 0, 1, x);)
        }
#else
#define IN_C(i, j) (q < nm && ROW(i) < M - i0 && COLUMN(j) < N - j0)
#define PLACE_OF(i, j) (c_of_q + ROW(i) * cr + COLUMN(j) * cc)
#if BETA
/* Those of a row are read before those of the last are written: compilers do not know that they differ. */
#define READ_ROW(i) \
    CLA_UNROLL for (int j = 0; j < OWN_COLUMNS; j += RUN) \
        if (IN_C(i, j)) GET_RUN((old[(i) % 2] + j * CLA_PARTS), PLACE_OF(i, j));
        CLA_REAL old[2][OWN_COLUMNS * CLA_PARTS];
        READ_ROW(0)
#endif
        CLA_UNROLL for (int i = 0; i < TI; i++) {
#if BETA
            if (i + 1 < TI) READ_ROW(i + 1)
#endif
            CLA_UNROLL for (int j = 0; j < OWN_COLUMNS; j += RUN) {
                if (IN_C(i, j)) {
                    CLA_REAL x[RUN * CLA_PARTS];
                    CLA_UNROLL for (int u = 0; u < RUN; u++) {
                        cla_lane e = K ? cla_lane_scale(CLA_VALUE(alpha), ELEMENT(i, j + u)) : ELEMENT(i, j + u);
                        ADD_OLD(e, cla_lane_of(old[i % 2][(j + u) * CLA_PARTS], old[i % 2][(j + u + 1) * CLA_PARTS - 1]))
                        x[u * CLA_PARTS + CLA_PARTS - 1] = cla_lane_im(e);
                        x[u * CLA_PARTS] = cla_lane_re(e);
                    }
                    PUT_RUN(PLACE_OF(i, j), x);
                }
            }
        }
#endif
    }
}
