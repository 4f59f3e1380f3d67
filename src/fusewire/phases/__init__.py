"""The phase breaker: test-driven work in RED, GREEN, REFACTOR and DOCUMENT, halted where it makes no progress."""
