"""Files as columns: plain tables and Parquet without an object a cell, and lists of JSON."""
