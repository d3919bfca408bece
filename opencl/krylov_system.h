/* What Krylov methods for batches of small systems are written in: a system, what it is preconditioned by, and its
 * vectors. A team of work-items (team.h) has a system. Each member changes rows member, member + CLA_TEAM, ... of vectors
 * only.
 *
 * PRECONDITIONER: 0 none, 1 factors, 2 blocks on the diagonal, 3 a sparse matrix.
 */
#include "blockmv.cl"
#include "csrmm.cl"
#include "csrsv.cl"
#include "householder.h"

#ifndef PRECONDITIONER
#define PRECONDITIONER 0
#endif
#define EACH_ROW(i) for (int i = cla_team_member(); i < S.n; i += CLA_TEAM)

/* A system, and the room of its team. */
typedef struct {
    int n, b;
    cla_matrix A, B, W, H;
    __global const long *indptr; /* of A */
    __global const int *indices;
    cla_csr_factors M; /* or what else is a preconditioner, by its values */
    CLA_REAL of_b, of_a; /* what b and residuals, and what A makes, are multiplied by, powers of two */
    __global CLA_REAL *history; /* of this lane, or nothing */
    CLA_LOCAL cla_lane *room;
    CLA_LOCAL int *flags;
} cla_system;

/* Y <- M X */
CLA_INLINE void precondition(cla_system S, int nrhs, cla_matrix X, cla_matrix Y)
{
    cla_team_sync();
#if PRECONDITIONER == 1
    cla_csrlusv(S.n, nrhs, S.M, X, Y, S.room);
#elif PRECONDITIONER == 2
    cla_blockmv(S.n, nrhs, S.b, S.M.values, X, Y, cla_team_member(), CLA_TEAM);
#elif PRECONDITIONER == 3
    cla_csrmm(S.n, nrhs, S.M.values, S.M.indptr, S.M.indices, 0, cla_lane_real(1), cla_lane_real(0), X, Y,
              cla_team_member(), CLA_TEAM);
#else
    EACH_ROW(i)
    for (int j = 0; j < nrhs; j++) cla_set(Y, i, j, cla_get(X, i, j));
#endif
    cla_team_sync();
}

/* Y <- alpha A X, scaled, where alpha is 1, or 0 for an X of zeros, with which A is not read */
CLA_INLINE void apply(cla_system S, int alpha, cla_matrix X, cla_matrix Y)
{
    cla_team_sync();
    cla_csrmm(S.n, 1, S.A, S.indptr, S.indices, 0, cla_lane_real(alpha ? S.of_a : 0), cla_lane_real(0), X, Y,
              cla_team_member(), CLA_TEAM);
    cla_team_sync();
}

CLA_INLINE cla_matrix vector(cla_system S, int k) { return cla_from(S.W, k * S.n, 0); }

/* Whether it is so in any lane of the group, if lanes have to go together. */
CLA_INLINE int any(cla_system S, int yes)
{
#if CLA_TEAM > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    if (cla_team_member() == 0) S.flags[get_local_id(0)] = yes;
    barrier(CLK_LOCAL_MEM_FENCE);
    yes = 0;
    for (int lane = 0; lane < CLA_TEAM_LANES; lane++) yes |= S.flags[lane];
#endif
    return yes;
}

CLA_INLINE cla_lane dot(cla_system S, cla_matrix X, cla_matrix Y)
{
    cla_lane sum = cla_lane_real(0);
    EACH_ROW(i) sum = cla_lane_fma(cla_lane_conj(cla_get(X, i, 0)), cla_get(Y, i, 0), sum);
    return cla_team_sum(S.room, CLA_TEAM, sum);
}

CLA_INLINE CLA_REAL sum_of_squares(cla_system S, cla_matrix X, CLA_REAL scale)
{
    CLA_REAL sum = 0;
    EACH_ROW(i) sum = cla_add_square(cla_get(X, i, 0) * scale, sum);
    return cla_lane_re(cla_team_sum(S.room, CLA_TEAM, cla_lane_real(sum)));
}

/* The 2-norm; no square overflows or underflows. Barriers are in loops, not under conditions, of which PoCL copies all
 * that follows for either case. */
CLA_INLINE CLA_REAL norm(cla_system S, cla_matrix X)
{
    CLA_REAL squares, scale = 1, found = 1;
    int passes = 1;
    for (int pass = 0; pass < passes; pass++) {
        scale = found;
        squares = sum_of_squares(S, X, scale);
        if (pass == 0) found = cla_scale_of(cla_lane_real(0), squares);
        passes = 1 + any(S, found != 1);
    }
    return cla_lane_sqrt(squares) * (scale > 1 ? 1 / CLA_RANGE : scale < 1 ? CLA_RANGE : 1);
}

/* Y <- Y + a X */
CLA_INLINE void add(cla_system S, cla_matrix Y, cla_lane a, cla_matrix X)
{
    EACH_ROW(i) cla_set(Y, i, 0, cla_lane_fma(a, cla_get(X, i, 0), cla_get(Y, i, 0)));
}

/* P <- R + a P */
CLA_INLINE void combine(cla_system S, cla_matrix P, cla_lane a, cla_matrix R)
{
    EACH_ROW(i) cla_set(P, i, 0, cla_lane_fma(a, cla_get(P, i, 0), cla_get(R, i, 0)));
}

CLA_INLINE void scale(cla_system S, cla_matrix X, CLA_REAL a) { EACH_ROW(i) cla_set(X, i, 0, cla_get(X, i, 0) * a); }
CLA_INLINE void copy(cla_system S, cla_matrix X, cla_matrix Y) { EACH_ROW(i) cla_set(Y, i, 0, cla_get(X, i, 0)); }

/* Scales x, and the first product Y with A, once it is known how. */
CLA_INLINE void divide_a(cla_system S, cla_matrix X, cla_matrix Y)
{
    if (S.of_a != 1) EACH_ROW(i) {
        cla_set(X, i, 0, cla_get(X, i, 0) * (1 / S.of_a));
        cla_set(Y, i, 0, cla_get(Y, i, 0) * S.of_a);
    }
}

/* R <- a B - R */
CLA_INLINE void subtract(cla_system S, cla_matrix B, CLA_REAL a, cla_matrix R)
{
    EACH_ROW(i) cla_set(R, i, 0, cla_get(B, i, 0) * a - cla_get(R, i, 0));
}

#define FEW (sizeof(CLA_REAL) == 4 ? 4 : 32) /* powers of two that b may be from one, */
#define MANY (4 * FEW) /* and what A or M makes, which it takes a pass over each product to change */

/* The inverse of a power of two that is near to a size; 1 if that is within 2^most, zero or not finite. */
CLA_INLINE CLA_REAL inverse(CLA_REAL size, int most)
{
    const int largest = sizeof(CLA_REAL) == 4 ? 126 : 1022;
    const int power = size > 0 && size < INFINITY ? ilogb(size) + 1 : 0;
    return abs(power) <= most ? 1 : ldexp((CLA_REAL)1, max(-largest, min(largest, -power)));
}

CLA_INLINE void record(cla_system S, int count, CLA_REAL size)
{
    if (S.history && cla_team_member() == 0) S.history[(long)count * CLA_VLEN] = size;
}

CLA_INLINE cla_lane quotient(cla_lane a, cla_lane b)
{
    return CLA_COMPLEX ? cla_lane_mul(a, cla_lane_recip(b)) : a / b;
}

/* An element of the table of gmres, which the first of a team writes. */
CLA_INLINE void enter(cla_system S, int i, int j, cla_lane a)
{
    if (cla_team_member() == 0) cla_set(S.H, i, j, a);
}

/* How far a system has come. */
typedef struct {
    int going, moved, given; /* whether it goes on, whether x is not zero, and whether it begins with finite numbers */
    int count, before; /* steps, and those when it began anew */
    CLA_REAL whole, limit, size; /* of b, and of the residual what it has to be, and what it is */
} cla_progress;

/* What a method is told. */
typedef struct {
    int maxiter, restart, ortho;
    CLA_REAL eps;
} cla_limits;

/* Computes the residual; systems go on if they have come nearer, and not there. Whether any does. X becomes zero where b
 * is, or is lost in what is rounded. */
CLA_INLINE int goes_on(cla_system S, cla_limits most, cla_matrix X, cla_matrix R, cla_progress *at)
{
    apply(S, at->moved, X, R);
    subtract(S, S.B, S.of_b, R);
    at->size = norm(S, R);
    if (at->before < 0 && at->given && (!(at->size <= at->limit || most.eps * at->size <= at->whole) ||
                                        (at->whole == 0 && at->limit == 0))) {
        EACH_ROW(i) {
            cla_set(X, i, 0, cla_lane_real(0));
            cla_set(R, i, 0, cla_get(S.B, i, 0) * S.of_b);
        }
        at->size = at->whole;
    }
    if (at->going) record(S, at->count, at->size);
    at->going = at->going && at->count > at->before && at->size > at->limit && at->size < INFINITY;
    at->going = at->going && at->count < most.maxiter;
    at->before = at->count;
    at->moved = 1;
    return any(S, at->going);
}
