"""The scope lock: which files a slice may change, who said so, and what was justified beside it."""
