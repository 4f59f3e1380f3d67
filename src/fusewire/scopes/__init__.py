"""What holds beyond one project: the person's halts, pauses, limits and spend, on this machine and on many."""
