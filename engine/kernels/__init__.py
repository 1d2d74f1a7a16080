"""What all compiled kernels use: decorators, the cache of compiled code, memory access, bounds checks."""
