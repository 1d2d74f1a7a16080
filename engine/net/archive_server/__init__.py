"""A replication source made of archived binlog files: the `serve` command."""
