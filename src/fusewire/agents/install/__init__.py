"""Registering the hook with coding agents: our entries go into the settings that people already have, and out again."""
