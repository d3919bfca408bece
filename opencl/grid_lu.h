/* What the steps of grid_lu_step.h, grid_lu_moving_step.h and grid_substitution_step.h take. Define INV, 1 for the steps of
 * an inversion in place; KEEP, 1 to keep L; FIRST, of the columns that a step changes; RECIPROCALS, 1 to keep those
 * of pivots, not these; and TILE, elements in local memory that a team has for itself.
 */
#define LU_STEPS (M < N ? M : N)
#define VECTOR (sizeof(cla_lane) < 16 ? 16 / (int)sizeof(cla_lane) : 1) /* elements that are read together */
#define PART_ ((OWN_COLUMNS + VECTOR - 1) / VECTOR * VECTOR)
/* a member's of a row: those of others are in other banks */
#define PART (PART_ + ((Q > 1 || (!PACKED && MEMBERS < 32)) && PART_ / VECTOR % 2 == 0 ? VECTOR : 0))
#define WIDTH (PART * Q)
#define LARGER(size, place, than, its_place) ((size) > (than) || ((size) == (than) && (place) < (its_place)))
/* The largest of what members have left in `sizes` and `places`; `each` is done for member o, `better` or not */
#define LU_LARGEST(each) \
    size = -1; \
    for (int o = 0; o < P; o++) { \
        const CLA_REAL other = sizes[team * P + o]; \
        const int there = places[team * P + o], better = LARGER(other, there, size, at); \
        at = better ? there : at; \
        size = better ? other : size; \
        each \
    }
#if CLA_WARP == 2 && P >= M
#define SIZE_OF(x) cla_lane_abs1(x)
#else
#define SIZE_OF(x) fmin(cla_lane_abs1(x), (CLA_REAL)INFINITY) /* what is not a number counts as infinite */
#endif

#if CLA_WARP == 2
#define LU_CANDIDATES (2 * TEAMS * CLA_WARPS)
#define LU_COLUMN
#else
#define LU_CANDIDATES (TEAMS * P)
#define LU_COLUMN __local cla_lane columns[TEAMS * 2 * LINE];
#endif
#define LU_HEAD \
    __local cla_lane rows[TEAMS * 2 * CLA_WARPS * WIDTH] __attribute__((aligned(16))); \
    __local cla_lane tiles[TEAMS * TILE] __attribute__((aligned(16))), pivots[TEAMS * LU_STEPS]; \
    __local CLA_REAL sizes[LU_CANDIDATES]; \
    __local int places[LU_CANDIDATES], swaps[TEAMS * LU_STEPS], singular[TEAMS]; \
    LU_COLUMN \
    CLA_GRID_HEAD \
    CLA_LOCAL cla_lane *tile = tiles + team * TILE; \
    cla_lane a[OWN_ROWS][OWN_COLUMNS]; \
    int place[OWN_ROWS]; \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) place[u] = M % P == 0 || u * P + p < M ? u * P + p : -1; \
    if (t == 0) singular[team] = 0;

/* The columns of a substitution */
#define BLOCK (BACK ? (N - 1) / Q - STEP : STEP)
#define IN_BLOCK (N - BLOCK * Q < Q ? N - BLOCK * Q : Q) /* steps; a call of min() would be no number to PoCL */
