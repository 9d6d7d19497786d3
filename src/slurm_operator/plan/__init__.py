"""The vocabulary of decisions: actions, reasons, conditions, the gate. Knows no reconciler."""
