"""The process that an agent starts for every hook: input, pipeline, output, status line."""
