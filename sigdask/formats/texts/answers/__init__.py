"""Answers to questions, held against those that people gave."""
