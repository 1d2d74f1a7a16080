"""The programs that are measured: one module each."""
