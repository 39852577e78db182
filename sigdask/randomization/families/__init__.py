"""Families of hypotheses that are tested together by their largest statistic."""
