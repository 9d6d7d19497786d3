"""Screens that are drawn again and again: frames, keys, and -w."""
