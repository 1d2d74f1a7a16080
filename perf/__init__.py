"""Measures the engine next to other programs (peers) that read the same binlog in the same run.

A case is a workload and the peers that are measured on it; a peer measures one program; the runner
interleaves the peers' runs; the report formats the measurements as tables. See `python -m perf --help`.
"""
