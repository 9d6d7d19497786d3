"""How models become CRDs, documentation and JSON, and back."""
