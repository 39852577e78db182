"""Early stopping: rules that end the counting of single comparisons, and counting in rounds."""
