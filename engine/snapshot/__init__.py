"""The snapshot process: reads the rows that tables have already, in chunks, beside the running stream.

Its chunks meet the stream in the sink (`engine.sink.snapshot_rows`), which says where the stream is.
"""
