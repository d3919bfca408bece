/* What kernels need for the steps of grid_lu_block_step.h, of which a block has TURNS, beside grid.h and grid_lu.h: lines
 * of a tile, which are rows of the matrix where they are SAVED, and rows of a block before it.
 */
#define BLOCKS (INV ? N : (LU_STEPS + 4 * TURNS - 1) / (4 * TURNS)) /* of one code, so that there are four, or one */
#define LEFT (INV ? BESIDE : BESIDE - STEP * BLOCKS * TURNS)
#define WHOLE_LINE ((HELD + VECTOR - 1) / VECTOR * VECTOR) /* VECTOR elements are read at once */
#define LU_LINE (WHOLE_LINE + (WHOLE_LINE / VECTOR % 2 == 0 ? VECTOR : 0))

#if TURNS
#define TILE_LINE LU_LINE
#define LINES_HELD (SAVED ? M + TURNS : M > TURNS ? M : TURNS)
#define TILE CLA_GRID_APART(LINES_HELD * LU_LINE, (MEMBERS + 1) * VECTOR)
#define LU_BEGIN \
    CLA_LOCAL cla_lane *lines = tile + SAVED * (M * LU_LINE); \
    int dead[OWN_ROWS]; /* -1 for rows that were taken, else 0 */ \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) { \
        dead[u] = place[u] < 0 ? -1 : 0; \
        if (place[u] < 0) place[u] = INT_MIN; \
    }
#define LU_END \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) place[u] = place[u] == INT_MIN ? -1 : max(place[u], ~place[u]); \
    CLA_TOGETHER
#else
#define LU_BEGIN
#define LU_END CLA_TOGETHER
#endif
