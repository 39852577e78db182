"""Texts aligned item by item with their references: translations and transcripts."""
