"""Files as columns: plain tables and Parquet without one object per cell, and JSON objects of lists."""
