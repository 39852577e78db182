"""Lists of things an item: labelled spans, terms, words and their morphs, matched with what is right."""
