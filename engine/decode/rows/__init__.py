"""From raw events to the offsets of cells: compressed events expanded, events grouped, rows walked."""
