"""Register the hook with coding agents: add our entries to the settings that people have, and remove them."""
