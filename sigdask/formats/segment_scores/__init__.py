"""Scores of segments by any metrics, as the metrics' own tools write them."""
