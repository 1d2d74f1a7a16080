"""How fast the engine is, beside other programs that read the same binlog in the same run.

A case is a workload and the peers that are measured on it; a peer knows how to measure one program; the
runner interleaves them; the report turns measurements into tables. `python -m perf --help` says how.
"""
