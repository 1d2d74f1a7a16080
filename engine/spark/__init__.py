"""The Spark room: the `binlog` data source over committed files."""
