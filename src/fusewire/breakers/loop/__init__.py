"""The loop breaker (seed 000): an autonomous loop that stagnates is stopped and recovered."""
