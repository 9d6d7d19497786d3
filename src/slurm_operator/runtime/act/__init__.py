"""Carries out plans: the only part that writes."""
