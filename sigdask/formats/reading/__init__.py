"""Shared tools of all formats: files, rows, tables, records, numbers, and alignment of items."""
