"""The binlog format: events, table maps, GTIDs, checksums, files; used by `net` and `decode`."""
