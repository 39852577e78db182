"""Lists per item: labelled spans, terms, or words and their morphs, matched with the gold standard."""
