"""`drain` and `undrain`: decided about a node list that was just read, then sent."""
