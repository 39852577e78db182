"""Answers to questions, compared with answers by people."""
