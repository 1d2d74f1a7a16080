"""A client of a server: connecting, logging in, asking."""
