"""Protected files: from a command line to its effects on paths, what is protected, and a backstop that restores it."""
