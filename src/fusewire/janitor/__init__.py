"""The memory janitor: keeps the agents' memory folder small without losing a line of it."""
