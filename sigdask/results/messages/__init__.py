"""What results say in words: notes, checks, remarks on intervals."""
