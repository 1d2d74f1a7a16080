"""What a user sets: settings, credentials, option files, TLS, the table filter."""
