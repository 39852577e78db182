"""Texts about results: notes, checks and remarks on intervals."""
