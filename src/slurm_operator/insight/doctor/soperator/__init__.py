"""What `doctor` says of the way over from Soperator, and of the way back."""
