"""Files as columns: what is a plain table is read without an object a cell, and nothing else is."""
