"""Tagged words, sentence by sentence: CoNLL's columns and chunks, Mbt, TiMBL."""
