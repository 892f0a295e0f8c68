"""Looking inside: gradient checks, a trace of every step, the explorable page."""
