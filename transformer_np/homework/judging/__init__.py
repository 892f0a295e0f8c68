"""From what an answer returned to a verdict and its explanation."""
