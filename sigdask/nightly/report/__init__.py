"""What is reported of a plan's run: text, page, costs, highlights, the gate's verdict."""
