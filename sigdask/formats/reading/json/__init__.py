"""Records, rows and nested values of JSON files."""
