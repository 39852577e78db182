"""Stopping early: where a rule ends the counting, and counting by rounds so that it can."""
