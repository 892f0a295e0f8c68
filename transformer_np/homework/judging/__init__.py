"""The judging of answers: attempts, comparison, verdict and explanation."""
