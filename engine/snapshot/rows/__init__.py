"""From result sets to batches of rows events: what is selected, and how rows become events."""
