"""Table definitions through time: DDL, what it does to definitions and rows, and which are certain.

No IO. The network process follows the stream's statements with it, the commit log stores its records.
"""
