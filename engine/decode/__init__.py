"""From raw event bytes to typed Arrow record batches: a batch's steps, and the decoder process."""
