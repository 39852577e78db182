"""Formats of parsers: dependency trees (CoNLL-U, CoNLL-X) and bracketed constituent trees."""
