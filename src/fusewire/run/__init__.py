"""The supervised loop: processes, pipes, watchdog, reaper and registry."""
