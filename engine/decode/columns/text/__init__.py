"""Text of every character set, as UTF-8."""
