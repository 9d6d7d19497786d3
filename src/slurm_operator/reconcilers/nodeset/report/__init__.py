"""What a NodeSet and its pods say about workers."""
