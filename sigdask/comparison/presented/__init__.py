"""How what was found is put before a reader, whoever writes it: cells of tables, sentences, verdicts."""
