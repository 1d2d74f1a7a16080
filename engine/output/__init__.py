"""What the writer and the readers of an output share: commit log, lock, schema of change rows, reader."""
