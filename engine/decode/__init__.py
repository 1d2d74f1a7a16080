"""The decode room: from raw event bytes to typed Arrow record batches."""
