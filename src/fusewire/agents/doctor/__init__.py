"""Check whether an agent is guarded: what is installed, where the hook is registered, what keeps it from running."""
