"""What would happen: the operator's own decisions, played against a picture. Nothing is done."""
