"""Columns of result tables that describe one aspect: intervals, adjusted p-values, assumptions, export."""
