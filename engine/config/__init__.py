"""What a user configures: settings, credentials, option files, TLS, the table filter."""
