"""Load, step, commit: the engine, the public Breaker, and what tests of other programs need."""
