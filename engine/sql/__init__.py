"""Change rows of an output as SQL statements that make the changes again, or undo them."""
