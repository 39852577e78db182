"""Texts item by item beside their references: translations and transcripts."""
