"""One dataclass with a decode function per kind of event, in modules by subject."""
