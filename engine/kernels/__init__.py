"""What every compiled kernel stands on: decorators, cache, memory access, bounds checks."""
