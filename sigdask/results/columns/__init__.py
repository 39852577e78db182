"""Groups of columns of result tables: intervals, adjusted p-values, assumptions, inputs; and coded columns."""
