"""The processes of a run, and what crosses between them: messages, shared memory, settings."""
