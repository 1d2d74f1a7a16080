"""The network room: the client protocol, sources of raw events, and their batching."""
