"""Clusters that run already: a client or cluster of the caller, or an address."""
