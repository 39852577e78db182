"""What a verdict is made of: amounts, sentences of one comparison and of many, checks in a line, borderline results."""
