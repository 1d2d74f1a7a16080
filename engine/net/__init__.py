"""The network package: the client/server protocol, the sources of raw events, and their batching."""
