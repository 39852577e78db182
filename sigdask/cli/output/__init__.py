"""Output of commands: results, log lines, progress, figures, pages, and streams that survive a lost reader."""
