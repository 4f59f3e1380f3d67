"""Test runners: how many tests passed, how each one ended, and why a run could not start."""
