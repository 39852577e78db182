"""Judgements of people and of models: ratings of segments, and battles."""
