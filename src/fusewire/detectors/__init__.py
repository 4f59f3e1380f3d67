"""Detectors: from an event to signals. One family a file, pure: what they need to know is in the event."""
