"""Results in words, tables, figures and pages: the classes that `api` returns, and all that displays them."""
