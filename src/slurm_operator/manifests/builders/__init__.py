"""The objects that the operator writes, piece by piece."""
