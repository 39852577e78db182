"""Where commands write: what is shown, drawn and said beside it, how far the work is, and streams that end nothing."""
