"""What tests share. Each module's docstring says what it has; by theme:

- bytes: `binlog_builder` (events and files), `made_events` and `event_bodies` (bodies), `every_event`,
  `made_transactions`, `historic_events`, `event_dump`, `partial_updates`, `transaction_pictures`,
  `binary_json`, `binary_rows` (results of prepared statements), `json_differences`, `compressed_columns`,
  `charset_characters`, `numbered_archive`; `plain_search` (a slow twin of a kernel)
- the engine's steps in this process: `batches`, `decoded_parts`, `column_cells`, `skipped_events`, `results`,
  `output`, `logged_table`, `writer_output`
- the engine as a command: `engine_run`, `preloaded` and `launcher` (runs without the imports), `fleet_run`,
  `short_segments`, `stream` (a query of it), `committed`, `object_output` and `copy_stream` (outputs in an
  object store), `proxy` and `bit_flips` (faults on the way), `lying_server` (a server from bytes),
  `power_cut`, `preload` (of functions in C), `restricted`, `spark_session`, `lakehouse`
- real servers: `secured`, `certificates`, `held_redo_log`, `replication`, `definitions` (of their tables),
  `xa_transactions`, `versioned_tables`; workloads on them: `load`, `mixed_workload`, `mixed_columns`,
  `column_cases`, `selected_rows`, `generated_values`, `event_workload`, `rare_workload`, `written_events`,
  `sql_scripts`
- oracles: `mysqlbinlog`, `binlog_listing`, `printed_values`, `shown_rows`, `same_rows`, `selected_tables`,
  `row_spans`, `kept_rows`, `kept_types`, `conversions` and `additions` (of columns), `suite_files`,
  `suite_findings`, `suite_changes`, `suite_moments`, `suite_snapshots`, `suite_targets`
- monitoring: `figures`; time: `clock`; threads: `worker`
- tools: `coverage` and `suite_results` (write docs/coverage.md), `make_samples`, `demo_lakehouse`,
  `second_try` (a plugin of pytest), `fewer_servers` (what `make test` leaves out)
"""
