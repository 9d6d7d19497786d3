"""The loop: World, queue, reconcile(), act(), report(), shutdown. Knows no single CRD."""
