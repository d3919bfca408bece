"""Code for V ordinary matrices at a time: one file, with one function of its name, for each kernel.

``NAME(code, vector, A, ..., X, ..., status, **options)`` emits code that reads the inputs, which are `Ordinary`
matrices, computes with lanes of type `vector`, and writes the results. `Code.room` is where matrices are meanwhile: in
registers, if they are small. `status` is told of matrices without a result, and of those that NumPy is to compute.
"""
