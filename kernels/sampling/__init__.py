"""The next token of each row of logits: the likeliest, or one drawn by temperature, top-k and top-p."""
