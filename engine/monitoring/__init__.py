"""Metrics, probes and a status page of a running engine, over HTTP, outside of the data's way."""
