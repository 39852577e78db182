"""Clusters that run already: a client or cluster of the caller, or a scheduler's address."""
