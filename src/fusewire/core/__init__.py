"""The pure core: events, meters, circuits and decisions. No clock, no I/O, no globals."""
