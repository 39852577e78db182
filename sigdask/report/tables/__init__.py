"""Tables of results and their writers for LaTeX and Markdown."""
