"""The commands of `binlog-engine`: a module for each, and what they share.

`dispatch` calls them with their settings.
`run` and `decode` share `pipeline_run`, `narrator`, `run_progress`, `outcome_report`, `retries` and
`corrupt_events`; `maintenance` is what a run does about old data, `reload` what SIGHUP does. `run_log` and
`logged` are the log. `compile_kernels`, with `compile_progress`, and `fork_server_preload` prepare the
processes of a run. The folder `fleet` has the command of that name.
"""
