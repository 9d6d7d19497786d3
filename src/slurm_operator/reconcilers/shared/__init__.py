"""What reconcilers of several kinds share."""
