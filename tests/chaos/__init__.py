"""Chaos: an engine under faults at random times, and a reader that checks every commit.

`workload` writes to a real server, `faults` is the table of what is done to engine, server, network and disk,
`follower` reads the output all the while, `trial` puts them together, and `planted` has engines with a fault
in their own code, each of which a trial must notice. `python -m tests.chaos` runs trials.
"""
