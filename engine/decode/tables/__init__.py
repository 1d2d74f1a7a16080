"""One table's rows as a record batch message: its definition, its columns, the metadata columns."""
