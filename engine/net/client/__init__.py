"""The client of a server: connections, login, queries and dumps."""
