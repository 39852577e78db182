"""Logs of single samples, as harnesses that evaluate language models write them."""
