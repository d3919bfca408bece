/* The register level: tiles of CLA_TILE x CLA_COLS lanes and what is done with them while they are in registers.
 *
 * A tile's lanes are named members (c00, c01, ...) that the X-macros below write out, not an array: compilers keep
 * named members in registers, but leave arrays in memory when an element is used under a run-time condition.
 * CLA_CELLS(F, s) writes F(s, i, j) for every lane (i, j) of a tile, CLA_SQUARE(F, s) for CLA_TILE x CLA_TILE of them;
 * CLA_DOWN(F) writes F(i) for each row, CLA_ACROSS(F) F(j) for each column.
 *
 * Tiles at the edge of a matrix repeat its last row or column when they are loaded and drop it when they are stored;
 * what is computed for the repeated ones never reaches the others.
 */
#ifndef CLA_TILE_H
#define CLA_TILE_H

#include "unroll.h"

#ifndef CLA_TILE
#if CLA_COMPLEX
#define CLA_TILE 2 /* rows of a tile, 1 to 8 */
#else
#define CLA_TILE 4
#endif
#endif
#ifndef CLA_COLS
#define CLA_COLS CLA_TILE /* columns of a tile, 1 to 8 */
#endif

/* What the diagonal of a triangle holds: the diagonal; nothing that is read, it is 1; its reciprocals. */
#define CLA_NONUNIT 0
#define CLA_UNIT 1
#define CLA_RECIPROCAL 2

#define CLA_DOWN(F) CLA_UNROLL1(CLA_TILE, F)
#define CLA_ACROSS(F) CLA_UNROLL1(CLA_COLS, F)
#define CLA_CELLS(F, s) CLA_UNROLL4(CLA_TILE, CLA_CELLS_OF_ROW, F, s, 0)
#define CLA_SQUARE(F, s) CLA_UNROLL4(CLA_TILE, CLA_SQUARE_OF_ROW, F, s, 0)
#define CLA_CELLS_OF_ROW(F, s, unused, i) CLA_UNROLL3(CLA_COLS, F, s, i)
#define CLA_SQUARE_OF_ROW(F, s, unused, i) CLA_UNROLL3(CLA_TILE, F, s, i)

#define MEMBER(s, i, j) cla_lane c##i##j;
typedef struct { CLA_CELLS(MEMBER, 0) } cla_tile;
typedef struct { CLA_SQUARE(MEMBER, 0) } cla_square;
#undef MEMBER

/* Row i of a tile that begins at row i0 of m; column likewise. */
#define ROW_OFFSET(i) const long row##i = min(i0 + i, m - 1) * A.rs;
#define COL_OFFSET(j) const long col##j = min(j0 + j, n - 1) * B.cs;

CLA_INLINE cla_tile cla_tile_zero(void)
{
    cla_tile c;
#define CLEAR(s, i, j) c.c##i##j = cla_lane_real(0);
    CLA_CELLS(CLEAR, 0)
#undef CLEAR
    return c;
}

/* c + A[i0:, :k] B[:k, j0:], A of m rows, B of n columns */
CLA_INLINE cla_tile cla_tile_multiply(cla_tile c, cla_matrix A, int i0, int m, cla_matrix B, int j0, int n, int k)
{
    CLA_DOWN(ROW_OFFSET)
    CLA_ACROSS(COL_OFFSET)
    for (; k > 0; k--, A.p += A.cs, B.p += B.rs) {
#define LOAD_A(i) const cla_lane a##i = cla_matrix_load(A, row##i);
#define LOAD_B(j) const cla_lane b##j = cla_matrix_load(B, col##j);
#define MULTIPLY(s, i, j) c.c##i##j = cla_lane_fma(a##i, b##j, c.c##i##j);
        CLA_DOWN(LOAD_A)
        CLA_ACROSS(LOAD_B)
        CLA_CELLS(MULTIPLY, 0)
#undef LOAD_A
#undef LOAD_B
#undef MULTIPLY
    }
    return c;
}

/* alpha c + beta C[i0:, j0:], C of m rows and n columns, not read where beta = 0 */
CLA_INLINE cla_tile cla_tile_combine(cla_lane alpha, cla_tile c, cla_lane beta, cla_matrix C, int i0, int m, int j0,
                                     int n)
{
    const cla_matrix A = C, B = C;
    CLA_DOWN(ROW_OFFSET)
    CLA_ACROSS(COL_OFFSET)
#define SCALE(s, i, j) c.c##i##j = cla_lane_scale(alpha, c.c##i##j);
#define ADD(s, i, j) c.c##i##j += cla_lane_scale(beta, cla_matrix_load(C, row##i + col##j));
    CLA_CELLS(SCALE, 0)
    if (!cla_lane_is_zero(beta)) {
        CLA_CELLS(ADD, 0)
    }
#undef SCALE
#undef ADD
    return c;
}

/* C[i0:, j0:] <- c, C of m rows and n columns */
CLA_INLINE void cla_tile_store(cla_tile c, cla_matrix C, int i0, int m, int j0, int n)
{
#define STORE(s, i, j) \
    if (i0 + i < m && j0 + j < n) cla_matrix_store(C, (i0 + i) * C.rs + (j0 + j) * C.cs, c.c##i##j);
    CLA_CELLS(STORE, 0)
#undef STORE
}

/* x <- inv(d) x, d lower triangular with the reciprocals of its diagonal on the diagonal */
CLA_INLINE cla_tile cla_tile_solve(cla_square d, cla_tile x)
{
#define SCALE_ROW(s, i, j) if (i == s) x.c##i##j = cla_lane_mul(d.c##s##s, x.c##i##j);
#define ELIMINATE(s, i, j) if (i > s) x.c##i##j = cla_lane_fnma(d.c##i##s, x.c##s##j, x.c##i##j);
#define SOLVE_ROW(s) CLA_CELLS(SCALE_ROW, s) CLA_CELLS(ELIMINATE, s)
    CLA_DOWN(SOLVE_ROW)
#undef SCALE_ROW
#undef ELIMINATE
#undef SOLVE_ROW
    return x;
}

#undef ROW_OFFSET
#undef COL_OFFSET

#endif
