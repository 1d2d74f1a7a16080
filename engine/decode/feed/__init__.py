"""The events feed: what happened that is not a row change."""
