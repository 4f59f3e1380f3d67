"""What an agent printed, read while it prints: its answer, its status block, tests, errors, limits, cost."""
