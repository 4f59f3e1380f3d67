"""The scope lock: which files a slice may change, which source says so, and what was justified."""
