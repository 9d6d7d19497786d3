"""Status, events, logs and recordings of what was decided."""
