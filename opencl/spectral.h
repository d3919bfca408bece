/* Teams of work-items that turn a matrix by reflections, and then by rotations.
 *
 * A matrix becomes tridiagonal or bidiagonal by Householder reflectors, which all members of a team share, and diagonal
 * by the implicit QR algorithm. Of that one member does the recurrence for the numbers, which is a small part of the
 * work, and puts the rotations of a step down for all members, each of which turns its own rows of vectors.
 *
 * Matrices are row by row, so that members who have a column each read neighbours. In local memory lines of odd lengths
 * make those with a row each as fast. What is too large for it is in global memory, and turned after a transposition.
 *
 * Define MEMBERS, of a team, and TEAMS, of a work-group; IN_GLOBAL, 1 if matrices are in global memory, of one team;
 * CLA_WARP, 1 on NVIDIA's GPUs, where teams are parts of warps or several, and groups whole warps. The teams of a group
 * go on until the last is done.
 */
#include "householder.h"
#include "jacobi.h"
#include "ordinary.h"
#include "warp.h"

#ifndef MEMBERS
#define MEMBERS 2
#define TEAMS 2
#define IN_GLOBAL 0
#endif

#define GROUP (TEAMS * MEMBERS)
#define CHIEFS (MEMBERS > 32 ? 32 : 0) /* members that turn no rows: a warp of which the first does the recurrence */
#define ODD(n) ((n) | 1) /* room for so many, of which neighbours are in different banks of memory */
#define LINE_OF(n) (IN_GLOBAL ? ((n) + 3) / 4 * 4 : ODD(n))
#define TEAM_OF(n) (TEAMS == 1 ? (n) : (((n) + MEMBERS - 1) / MEMBERS | 1) * MEMBERS) /* room of a team */
#define CLA_TRIES 30 /* steps for each value, as LAPACK has; 1 or 2 are usual */
#define CLA_UNKNOWN INT_MAX /* the power of two for what is not finite */
#define CLA_LEAST_SQUARE (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-1000 : (CLA_REAL)0x1p-120) /* less has lost its digits */

typedef CLA_PASTE(CLA_REAL, 2) cla_plane; /* cosine and sine */

/* MEET: members of a team have done what is before it; GATHER: all of the work-group have. */
#define GATHER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#define MEET GATHER
#if CLA_WARP && GROUP <= 32
#undef GATHER
#define GATHER CLA_TOGETHER
#endif
#if CLA_WARP && MEMBERS <= 32
#undef MEET
#define MEET CLA_TOGETHER
#endif

#include "team_sums.h"

/* Room for the matrices of a work-group, as arguments or a declaration, and for numbers to sum up; and the first matrix.
 * What is in global memory is for so many matrices that a launch does, from number `begin` on. */
#if IN_GLOBAL
#define CLA_SPACE __global
#define CLA_MATRICES , __global cla_lane *work, long begin /* not restrict: members exchange numbers through it */
#define CLA_FIRST (begin + get_group_id(0))
#define CLA_SPECTRAL_ROOM(size) \
    __local CLA_REAL room[GROUP]; \
    CLA_SPACE cla_lane *matrices = work + get_group_id(0) * (long)(size);
#else
#define CLA_SPACE CLA_LOCAL
#define CLA_MATRICES
#define CLA_FIRST (get_group_id(0) * (long)TEAMS)
#define CLA_SPECTRAL_ROOM(size) \
    __local CLA_REAL room[GROUP]; \
    __local cla_lane matrices[TEAMS * (size)];
#endif

CLA_INLINE cla_lane cla_lanes_of_team(CLA_LOCAL CLA_REAL *room, cla_lane x)
{
    const CLA_REAL re = cla_sum_of_team(room, cla_lane_re(x));
    return cla_lane_of(re, CLA_COMPLEX ? cla_sum_of_team(room, cla_lane_im(x)) : 0);
}

/* A part of a matrix, of which element (i, j) is at p[i * rs + j * cs] */
typedef struct {
    CLA_SPACE cla_lane *p;
    int rs, cs, conj; /* 1: memory holds the conjugates of the elements */
} cla_part;

CLA_INLINE cla_part cla_part_at(CLA_SPACE cla_lane *p, int rs, int cs, int conj)
{
    cla_part A = {p, rs, cs, conj};
    return A;
}
CLA_INLINE cla_part cla_part_from(cla_part A, int i, int j)
{
    A.p += i * A.rs + j * A.cs;
    return A;
}
CLA_INLINE cla_lane cla_part_get(cla_part A, int i, int j)
{
    const cla_lane a = A.p[i * A.rs + j * A.cs];
    return A.conj ? cla_lane_conj(a) : a;
}
CLA_INLINE void cla_part_set(cla_part A, int i, int j, cla_lane a)
{
    A.p[i * A.rs + j * A.cs] = A.conj ? cla_lane_conj(a) : a;
}

/* The reflector that turns [alpha; x] into [beta; 0], of a column x of m numbers, which becomes v. Elements are so scaled
 * that no square overflows. Afterwards members have to meet before others read x. */
CLA_INLINE cla_coefficients cla_reflector_of_team(CLA_LOCAL CLA_REAL *room, int t, cla_lane alpha, int m, cla_part x)
{
    CLA_REAL squares = 0;
    for (int i = t; i < m; i += MEMBERS) squares = cla_add_square(cla_part_get(x, i, 0), squares);
    squares = cla_sum_of_team(room, squares);
    const int acts = fma(cla_lane_im(alpha), cla_lane_im(alpha), squares) > CLA_LEAST_SQUARE;
    const cla_coefficients h = cla_coefficients_of(acts ? alpha : cla_lane_real(cla_lane_re(alpha)), acts, squares, 1);
    for (int i = t; i < m; i += MEMBERS)
        cla_part_set(x, i, 0, acts ? cla_lane_mul(cla_part_get(x, i, 0), h.inverse) : cla_lane_real(0));
    return h;
}

/* [top; C] <- [top; C] - tau [1; v] [1; v]^H [top; C], for n columns of m numbers, of which each member has some; if
 * `fresh` the row at the top is of zeros, whatever is there. */
CLA_INLINE void cla_reflect_by_team(int t, int m, int n, int fresh, cla_part v, cla_lane tau, cla_part top, cla_part C)
{
    for (int j = t; j < n; j += MEMBERS) {
        const cla_lane first = fresh ? cla_lane_real(0) : cla_part_get(top, 0, j);
        cla_lane w = first;
        for (int i = 0; i < m; i++) w = cla_lane_fma(cla_lane_conj(cla_part_get(v, i, 0)), cla_part_get(C, i, j), w);
        w = cla_lane_mul(tau, w);
        cla_part_set(top, 0, j, first - w);
        for (int i = 0; i < m; i++) cla_part_set(C, i, j, cla_lane_fnma(cla_part_get(v, i, 0), w, cla_part_get(C, i, j)));
    }
}

/* Column k of the product of reflectors from k on, in place of v, of m numbers, and of what is above it */
CLA_INLINE void cla_first_of_reflector(int t, int m, cla_part v, cla_lane tau, cla_part top, cla_part column)
{
    for (int i = t; i < m; i += MEMBERS)
        cla_part_set(column, i, 0, CLA_MINUS(cla_lane_mul(tau, cla_part_get(v, i, 0))));
    if (t == 0) cla_part_set(top, 0, 0, cla_lane_real(1) - tau);
}

/* 1 / sqrt(a) of numbers that are neither subnormal nor zero, and of these anything */
CLA_INLINE CLA_REAL cla_inverse_root(CLA_REAL a)
{
#if CLA_WARP
    if (sizeof(CLA_REAL) == 8) {
        double r;
        asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"((double)a));
        const CLA_REAL rest = fma(CLA_MINUS(a), (CLA_REAL)r * (CLA_REAL)r, (CLA_REAL)1);
        return fma((CLA_REAL)r * rest, fma(rest, (CLA_REAL)0.375, (CLA_REAL)0.5), (CLA_REAL)r);
    }
#endif
    return cla_lane_rsqrt(a);
}

/* The rotation of [x; z] to [length; 0], or the identity where both count as nothing */
CLA_INLINE cla_plane cla_plane_of(CLA_REAL x, CLA_REAL z, CLA_REAL *length)
{
    const CLA_REAL square = fma(x, x, z * z), inverse = cla_inverse_root(square);
    const int acts = square > CLA_LEAST_SQUARE;
    cla_plane plane;
    plane.x = acts ? x * inverse : 1;
    plane.y = acts ? z * inverse : 0;
    *length = acts ? square * inverse : x;
    return plane;
}

/* Columns `begin` to `end` of a row, which are cs apart, turned by planes of each and the next */
CLA_INLINE void cla_turn_row(CLA_SPACE cla_lane *row, int cs, CLA_LOCAL const cla_plane *planes, int begin, int end)
{
    cla_lane x = row[begin * cs];
    for (int j = begin; j < end; j++) {
        const cla_plane plane = planes[j];
        const cla_lane y = row[(j + 1) * cs];
        row[j * cs] = y * plane.y + x * plane.x;
        x = y * plane.x - x * plane.y;
    }
    row[end * cs] = x;
}

/* Scale m x n elements, of lines of this length, to about 2^exponent. Returns by which power of 2, or one that is too
 * large where some are not finite. */
CLA_INLINE int cla_scale_by_team(CLA_LOCAL CLA_REAL *room, int t, int m, int n, CLA_SPACE cla_lane *A, int line,
                                 int exponent)
{
    CLA_REAL largest = 0;
    for (int i = 0; i < m; i++)
        for (int j = t; j < n; j += MEMBERS) largest = cla_larger(largest, A[i * line + j]);
    largest = cla_largest_of_team(room, largest);
    const int known = largest < INFINITY, power = known ? cla_power(largest, exponent) : 0;
    for (int i = 0; i < m; i++)
        for (int j = t; j < n; j += MEMBERS) A[i * line + j] = cla_scaled(A[i * line + j], power);
    MEET
    return known ? power : CLA_UNKNOWN;
}

/* A block of a matrix that is bidiagonal or tridiagonal, from element `begin` to `end` of its diagonal, where the
 * elements beside the diagonal count; and how many steps are left for it. All before it may be larger. */
typedef struct {
    int begin, end, tries;
} cla_block;

CLA_INLINE int cla_counts(CLA_REAL x, CLA_REAL between, CLA_REAL y, CLA_REAL floor)
{
    return fabs(between) > fma(fabs(x) + fabs(y), CLA_ROUNDING, floor);
}

/* The last block from `end` upwards of diagonals d and e; its beginning is its end if there is none. */
CLA_INLINE void cla_last_block(cla_block *block, CLA_LOCAL const CLA_REAL *d, CLA_LOCAL const CLA_REAL *e, CLA_REAL floor)
{
    int begin = block->end;
    for (;;) {
        for (; begin > 0 && cla_counts(d[begin - 1], e[begin - 1], d[begin], floor);) begin--;
        if (begin < block->end || begin <= 0) break;
        block->end = --begin;
    }
    block->begin = max(begin, 0);
}

/* After a step on a block: place `split` is the last but the very last between two elements that does not count, or is
 * before the block; `found` if the very last one does not. */
CLA_INLINE void cla_after_step(cla_block *block, int split, int found, CLA_LOCAL const CLA_REAL *d,
                               CLA_LOCAL const CLA_REAL *e, CLA_REAL floor)
{
    block->tries--;
    block->begin = split + 1;
    if (found) block->end--;
    if (block->begin >= block->end) {
        block->end = block->begin - 1;
        if (block->end > 0) cla_last_block(block, d, e, floor);
        else block->begin = block->end = 0;
    }
}

/* What the first work-items of a group tell the others of matrices: for two steps where blocks begin and end, and at
 * last whether the iteration did not end. Before it, whether it may begin; after it, whether there is no result. */
#define CLA_STATES(name) __local int name[6 * TEAMS];
#define CLA_WINDOW(states, turn, team) ((states) + ((turn) % 2 * TEAMS + (team)) * 2)
#define CLA_BEFORE(states, team) (states)[4 * TEAMS + (team)]
#define CLA_AFTER(states, team) (states)[5 * TEAMS + (team)]

/* Whether any matrix of the group is worked on in this turn */
CLA_INLINE int cla_goes_on(CLA_LOCAL int *states, int turn)
{
    int any = 0;
    for (int k = 0; k < TEAMS; k++) any |= CLA_WINDOW(states, turn, k)[0] < CLA_WINDOW(states, turn, k)[1];
    return any;
}

/* How many of n numbers are before the j-th, in ascending order, or in descending order of their sizes */
CLA_INLINE int cla_rank(CLA_LOCAL const CLA_REAL *d, int n, int j, int descending)
{
    int rank = 0;
    const CLA_REAL x = descending ? CLA_MINUS(fabs(d[j])) : d[j];
    for (int i = 0; i < n; i++) {
        const CLA_REAL y = descending ? CLA_MINUS(fabs(d[i])) : d[i];
        rank += y < x || (y == x && i < j);
    }
    return rank;
}
