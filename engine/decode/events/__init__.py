"""One declared type with a decode function for every kind of event, grouped by what the events are about."""
