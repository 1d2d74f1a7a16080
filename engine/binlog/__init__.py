"""The binlog format itself: events, table maps, GTIDs, checksums, files; for net and decode alike."""
