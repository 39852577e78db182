"""Results of comparisons: as objects, as columns, and as files."""
