"""Families of hypotheses that are judged together by their largest statistic."""
