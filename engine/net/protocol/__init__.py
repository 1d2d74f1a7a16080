"""The client protocol, sans-IO: functions and small classes from bytes to values and back."""
