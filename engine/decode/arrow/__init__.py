"""What column decoders stand on: Arrow buffers and messages, built in the memory that the sink reads."""
