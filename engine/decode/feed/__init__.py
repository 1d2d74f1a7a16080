"""The events feed: all events that are not row changes, as rows of a table."""
