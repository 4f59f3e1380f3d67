"""Is an agent really guarded? What is installed, where the hook is registered, what keeps it from running."""
