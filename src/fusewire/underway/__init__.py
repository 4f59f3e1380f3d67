"""Work that somebody has begun in a project, as an agent's session meets it: slices, phases, a stop hook's loop."""
