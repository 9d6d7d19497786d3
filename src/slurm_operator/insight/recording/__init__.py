"""What the flight recorder kept: fetched from the operator's pods, and replayed."""
