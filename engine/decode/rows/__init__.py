"""From raw events to the places of cells: compressed events opened, events sorted, rows walked."""
