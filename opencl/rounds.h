/* Work-groups that have LANES matrices of a pack, a divisor of V, and MEMBERS work-items for each, which go through a list
 * round by round: compactla/sparse/rounds.py makes it. A member's round has two words, each of two numbers of 16 bits:
 * which one of its own it changes and one left of that, and one above and flags, of what happens in this order.
 */
#ifndef CLA_ROUNDS_H
#define CLA_ROUNDS_H

#include "room.h"
#include "unroll.h"

#define CLA_TAKE 1 /* it takes its own, */
#define CLA_SUBTRACT 2 /* subtracts a product of the two others, */
#define CLA_PIVOT 4 /* makes it a pivot, or multiplies by the reciprocal of one, */
#define CLA_LEFT 8 /* divides it by the U */
#define CLA_ABOVE 16 /* or the L of a pivot, */
#define CLA_GIVE 32 /* gives it back */
#define CLA_SYNC 64 /* and waits for all others */

CLA_INLINE int cla_round_own(uint2 words) { return words.x & 0xffff; }
CLA_INLINE int cla_round_left(uint2 words) { return words.x >> 16; }
CLA_INLINE int cla_round_above(uint2 words) { return words.y & 0xffff; }
CLA_INLINE int cla_round_what(uint2 words) { return words.y >> 16; }

#endif
