"""Clusters that run already: a client at hand or an address."""
