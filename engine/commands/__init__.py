"""What each command of `binlog-engine` does."""
