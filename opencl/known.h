/* Macros of kernels for known sizes, with values for a build that has none of them, such as an editor's: matrices are
 * 4 x 4, in packs, row by row. A build that defines N defines all that its kernel uses. What the macros mean is at the
 * head of compactla/gpu/run.py; what tunables do, at that of the kernels.
 */
#ifndef N
#define M 4 /* sizes */
#define N 4
#define K 4
#define R 4

#define CLA_KNOWN_RS (4 * CLA_PARTS * CLA_VLEN) /* strides, and which operands are conjugated */
#define CLA_KNOWN_CS (CLA_PARTS * CLA_VLEN)
#define ARS CLA_KNOWN_RS
#define ACS CLA_KNOWN_CS
#define ACONJ 0
#define BRS CLA_KNOWN_RS
#define BCS CLA_KNOWN_CS
#define BCONJ 0
#define CRS CLA_KNOWN_RS
#define CCS CLA_KNOWN_CS
#define XRS CLA_KNOWN_RS
#define XCS CLA_KNOWN_CS
#define XCONJ 0
#define YRS CLA_KNOWN_RS
#define YCS CLA_KNOWN_CS
#define YCONJ 0
#define URS CLA_KNOWN_RS
#define UCS CLA_KNOWN_CS
#define UCONJ 0
#define VHRS CLA_KNOWN_RS
#define VHCS CLA_KNOWN_CS
#define VHCONJ 0
#define TAURS CLA_KNOWN_CS /* columns, rows and columns of real numbers */
#define TAUCONJ 0
#define DCS CLA_KNOWN_CS
#define RCS CLA_VLEN
#define SRS CLA_VLEN
#define WRS CLA_VLEN

#define ALPHA 1 /* scalars: any */
#define BETA 1
#define THRESHOLD 1
#define COMPUTE_UV 0 /* options: the first letter */
#define DIAG 0
#define JOBZ 0
#define TRANS 0
#define UPLO 0

#define GROUP 32 /* tunables of most kernels */
#define LANES 8
#define COLUMNS 2
#define TEAM 2
#endif

#ifndef ACOMMON
#define ACOMMON 0 /* 1: an operand is one ordinary matrix for the whole batch */
#endif
#ifndef BCOMMON
#define BCOMMON 0
#endif
