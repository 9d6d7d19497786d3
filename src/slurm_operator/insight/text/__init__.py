"""The answers as text, for terminals and for files of a bundle."""
