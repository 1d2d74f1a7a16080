"""The sink room: results back in order, onto disk, and committed."""
