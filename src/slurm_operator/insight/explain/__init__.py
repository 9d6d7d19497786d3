"""Why something is as it is: the chain from what is seen to its root."""
