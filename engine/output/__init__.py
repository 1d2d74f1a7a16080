"""The output format, shared by writer and readers: commit log, lock, schema of change rows, reader."""
