"""The commands of `binlog-engine`: a module for each, and what they share.

`run`, `decode`, `events`, `status`, `vacuum`, `consumers`, `compact`, `verify`, `serve` and `demo` are the
commands. `run` and `decode` share `pipeline_run`, `run_progress`, `outcome_report`, `retries` and
`corrupt_events`; `maintenance` is what a run does about old data. `compile_kernels`, with `compile_progress`,
and `fork_server_preload` prepare the processes of a run.
"""
