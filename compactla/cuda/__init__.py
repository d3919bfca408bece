"""CUDA memory: arrays of PyTorch, CuPy, JAX and others, which the kernels in `opencl/` reach where they lie.

`libraries` knows where arrays are; `compactla.foreign` adopts them, and hands results back as what came in. `arrays`
and `queues` give memory and streams the names that pyopencl has for such, so that `compactla.gpu` sees no difference;
`compile` and `program` make kernels, and `driver` launches them.
"""
