"""Tagged words, sentence by sentence: columns and chunks of CoNLL, Mbt, TiMBL."""
