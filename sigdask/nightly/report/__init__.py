"""Reports on a plan's run: text, HTML page, costs, highlights and the gate's verdict."""
