"""The client/server protocol without I/O: functions and small classes that parse and build its packets."""
