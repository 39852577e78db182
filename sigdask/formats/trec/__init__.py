"""Information retrieval: runs and relevance judgements, or scores per topic printed by tools."""
