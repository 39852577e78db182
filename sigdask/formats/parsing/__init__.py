"""Formats of parsers: dependency trees (CoNLL-U) and bracketed constituent trees."""
