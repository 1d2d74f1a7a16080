"""Single events and their rows as readable values, for the `events` command."""
