"""The vocabulary of decisions: actions, plans, conditions, the World. Knows no reconciler."""
