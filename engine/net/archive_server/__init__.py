"""The archive server: serves archived binlog files as a replication source (the `serve` command)."""
