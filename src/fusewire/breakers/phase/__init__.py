"""The phase breaker (seed 001): RED, GREEN, REFACTOR and DOCUMENT, halted where they make no progress."""
