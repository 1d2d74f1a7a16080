"""From received bytes to numbered batches."""
