"""What reconcilers may look at, kept in memory."""
