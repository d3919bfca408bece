/* The register level: tiles of TILE x COLS lanes and what is done with them while they are in registers.
 *
 * A file that others include leaves no macro behind but those that its comments name.
 *
 * A tile's lanes are named members (c00, c01, ...) that the X-macros below write out, not an array: compilers keep
 * named members in registers, but leave arrays in memory when an element is used under a run-time condition.
 * CELLS(F, s) writes F(s, i, j) for every lane (i, j) of a tile, SQUARE(F, s) for TILE x TILE of them;
 * DOWN(F) writes F(i) for each row, ACROSS(F) F(j) for each column.
 *
 * Tiles at the edge of a matrix repeat its last row or column when they are loaded and drop it when they are stored;
 * what is computed for the repeated ones never reaches the others.
 */
#ifndef TILE_H
#define TILE_H

#include "lane.h"

#ifndef TILE
#if COMPLEX
#define TILE 2 /* rows of a tile, 1 to 8 */
#else
#define TILE 4
#endif
#endif
#ifndef COLS
#define COLS TILE /* columns of a tile, 1 to 8 */
#endif

#define LIST1(F) F(0)
#define LIST2(F) LIST1(F) F(1)
#define LIST3(F) LIST2(F) F(2)
#define LIST4(F) LIST3(F) F(3)
#define LIST5(F) LIST4(F) F(4)
#define LIST6(F) LIST5(F) F(5)
#define LIST7(F) LIST6(F) F(6)
#define LIST8(F) LIST7(F) F(7)

#define ROW1(F, s, i) F(s, i, 0)
#define ROW2(F, s, i) ROW1(F, s, i) F(s, i, 1)
#define ROW3(F, s, i) ROW2(F, s, i) F(s, i, 2)
#define ROW4(F, s, i) ROW3(F, s, i) F(s, i, 3)
#define ROW5(F, s, i) ROW4(F, s, i) F(s, i, 4)
#define ROW6(F, s, i) ROW5(F, s, i) F(s, i, 5)
#define ROW7(F, s, i) ROW6(F, s, i) F(s, i, 6)
#define ROW8(F, s, i) ROW7(F, s, i) F(s, i, 7)

#define GRID1(ROW, F, s) ROW(F, s, 0)
#define GRID2(ROW, F, s) GRID1(ROW, F, s) ROW(F, s, 1)
#define GRID3(ROW, F, s) GRID2(ROW, F, s) ROW(F, s, 2)
#define GRID4(ROW, F, s) GRID3(ROW, F, s) ROW(F, s, 3)
#define GRID5(ROW, F, s) GRID4(ROW, F, s) ROW(F, s, 4)
#define GRID6(ROW, F, s) GRID5(ROW, F, s) ROW(F, s, 5)
#define GRID7(ROW, F, s) GRID6(ROW, F, s) ROW(F, s, 6)
#define GRID8(ROW, F, s) GRID7(ROW, F, s) ROW(F, s, 7)

#define DOWN(F) PASTE(LIST, TILE)(F)
#define ACROSS(F) PASTE(LIST, COLS)(F)
#define CELLS(F, s) PASTE(GRID, TILE)(PASTE(ROW, COLS), F, s)
#define SQUARE(F, s) PASTE(GRID, TILE)(PASTE(ROW, TILE), F, s)

#define MEMBER(s, i, j) lane c##i##j;
typedef struct { CELLS(MEMBER, 0) } tile;
typedef struct { SQUARE(MEMBER, 0) } square;
#undef MEMBER

/* Row i of a tile that begins at row i0 of m; column likewise. */
#define ROW_OFFSET(i) const long row##i = min(i0 + i, m - 1) * A.rs;
#define COL_OFFSET(j) const long col##j = min(j0 + j, n - 1) * B.cs;

INLINE tile tile_zero(void)
{
    tile c;
#define CLEAR(s, i, j) c.c##i##j = lane_real(0);
    CELLS(CLEAR, 0)
#undef CLEAR
    return c;
}

/* c + A[i0:, :k] B[:k, j0:], A of m rows, B of n columns */
INLINE tile tile_multiply(tile c, matrix A, int i0, int m, matrix B, int j0, int n, int k)
{
    DOWN(ROW_OFFSET)
    ACROSS(COL_OFFSET)
    for (; k > 0; k--, A.p += A.cs, B.p += B.rs) {
#define LOAD_A(i) const lane a##i = matrix_load(A, row##i);
#define LOAD_B(j) const lane b##j = matrix_load(B, col##j);
#define MULTIPLY(s, i, j) c.c##i##j = lane_fma(a##i, b##j, c.c##i##j);
        DOWN(LOAD_A)
        ACROSS(LOAD_B)
        CELLS(MULTIPLY, 0)
#undef LOAD_A
#undef LOAD_B
#undef MULTIPLY
    }
    return c;
}

/* alpha c + beta C[i0:, j0:], C of m rows and n columns, not read where beta = 0 */
INLINE tile tile_combine(lane alpha, tile c, lane beta, matrix C, int i0, int m, int j0, int n)
{
    const matrix A = C, B = C;
    DOWN(ROW_OFFSET)
    ACROSS(COL_OFFSET)
#define SCALE(s, i, j) c.c##i##j = lane_scale(alpha, c.c##i##j);
#define ADD(s, i, j) c.c##i##j += lane_scale(beta, matrix_load(C, row##i + col##j));
    CELLS(SCALE, 0)
    if (!lane_is_zero(beta)) {
        CELLS(ADD, 0)
    }
#undef SCALE
#undef ADD
    return c;
}

/* C[i0:, j0:] <- c, C of m rows and n columns */
INLINE void tile_store(tile c, matrix C, int i0, int m, int j0, int n)
{
#define STORE(s, i, j) \
    if (i0 + i < m && j0 + j < n) matrix_store(C, (i0 + i) * C.rs + (j0 + j) * C.cs, c.c##i##j);
    CELLS(STORE, 0)
#undef STORE
}

/* x <- inv(d) x, d lower triangular with the reciprocals of its diagonal on the diagonal */
INLINE tile tile_solve(square d, tile x)
{
#define SCALE_ROW(s, i, j) if (i == s) x.c##i##j = lane_mul(d.c##s##s, x.c##i##j);
#define ELIMINATE(s, i, j) if (i > s) x.c##i##j = lane_fnma(d.c##i##s, x.c##s##j, x.c##i##j);
#define SOLVE_ROW(s) CELLS(SCALE_ROW, s) CELLS(ELIMINATE, s)
    DOWN(SOLVE_ROW)
#undef SCALE_ROW
#undef ELIMINATE
#undef SOLVE_ROW
    return x;
}

#undef ROW_OFFSET
#undef COL_OFFSET

#endif
