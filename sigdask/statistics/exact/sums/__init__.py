"""Sums of signed numbers: a method a module."""
