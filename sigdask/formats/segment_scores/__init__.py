"""Segment scores of any metrics, in the output formats of the metrics' own tools."""
