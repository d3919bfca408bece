/* Operands and results of kernels that take stacks of ordinary matrices as they are.
 *
 * Operands have any type of numbers and any strides, and are computed with as CLA_REAL. Define N, R, the sizes; for
 * operands A and B their numbers' type ATYPE, of which APARTS make an element, ASAME, 1 if elements are those that are
 * computed with, and ARS, ACS, the strides from row to row and column to column in such numbers; and for results their
 * numbers' type TARGET. Arguments of a kernel: nm;
 * `told`, 1 if `failed` is one flag that says whether a matrix fails, 2 if it is a flag for each, 0 if nobody wants to
 * know; `failed`; for each operand its buffer, where it begins, and the stride from matrix to matrix in numbers;
 * results. Those of matrices that fail, for which `bad` is not 0, are NaN.
 */
#ifndef CLA_ARGUMENT /* grids that find singular values come here twice */

#include "lane.h"

#ifndef N
#define N 4
#define R 4
#define ATYPE float
#define APARTS 1
#define ASAME 0
#define ARS 4
#define ACS 1
#define BTYPE float
#define BPARTS 1
#define BSAME 0
#define BRS 4
#define BCS 1
#endif
#ifndef TARGET
#define TARGET float
#endif

#define CLA_ARGUMENT(A) , __global const A##TYPE *restrict A, long A##0, long A##step
#define CLA_NUMBER_AT(A, i) cla_number(A##PARTS, (CLA_REAL)A[i], (CLA_REAL)A[(i) + A##PARTS - 1])
#define CLA_CHECKED(x) cla_lane_select(bad != 0, cla_lane_of(NAN, NAN), x)
#define CLA_REPORT if (bad && told && q < nm) failed[told == 2 ? q : 0] = 1;

CLA_INLINE cla_lane cla_number(int parts, CLA_REAL re, CLA_REAL im) { return cla_lane_of(re, parts == 2 ? im : 0); }

CLA_INLINE void cla_put(__global TARGET *p, long i, cla_lane a)
{
    p[i * CLA_PARTS] = (TARGET)cla_lane_re(a);
#if CLA_COMPLEX
    p[i * CLA_PARTS + 1] = (TARGET)cla_lane_im(a);
#endif
}

#endif
