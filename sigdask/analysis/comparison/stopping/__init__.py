"""Stopping early: rules that end the counting of comparisons, and counting in rounds."""
