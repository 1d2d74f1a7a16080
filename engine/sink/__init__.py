"""The sink process: restores the order of decoded batches, writes data files and commits them."""
