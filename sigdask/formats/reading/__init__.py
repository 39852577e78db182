"""What every format uses: files, rows, tables, records, numbers, and how items are aligned."""
