"""The constraint breaker (seed 003): a rule of the project that is violated again and again."""
