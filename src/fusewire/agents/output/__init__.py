"""Read what an agent prints while it prints: its answer, its status block, tests, errors, limits, cost."""
