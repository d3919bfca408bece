/* Blocks of lines that are factored to inverses, as thomas.cl has them, of a size, BLOCK, that is known when this is
 * compiled. */
#ifndef CLA_INVERSES_H
#define CLA_INVERSES_H

#include "lane.h"

#define CLA_ELEMENT(i, j) (((i) * BLOCK + (j)) * (CLA_PARTS * CLA_VLEN))
#define CLA_SLOT (BLOCK * BLOCK * CLA_PARTS * CLA_VLEN) /* CLA_REAL elements of the blocks of a pack */

#endif
