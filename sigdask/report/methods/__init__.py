"""The methods paragraph of a paper and its references."""
