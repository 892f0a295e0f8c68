"""Tools to look inside a model: gradient checks, a trace of every step, the attention explorer."""
