"""Clusters whose workers or drivers are jobs of a queueing system."""
