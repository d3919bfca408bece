/* herk: C <- alpha A A^H + beta C: cla_herk, and kernels for batches, are beside those of syrk. */
#include "syrk.cl"
