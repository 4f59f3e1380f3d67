"""The supervised loop: an agent is started again and again, watched, judged, and stopped where it stagnates."""
