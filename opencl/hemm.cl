/* hemm: C <- alpha A B + beta C, A Hermitian: cla_hemm, and kernels for batches, are beside those of symm. */
#include "symm.cl"
