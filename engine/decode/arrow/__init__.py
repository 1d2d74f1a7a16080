"""Arrow buffers and messages, built directly in the memory that the sink reads; column decoders use them."""
