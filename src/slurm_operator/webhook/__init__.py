"""Admission over HTTPS; asks api/ for problems and answers. Decides nothing."""
