"""Notifications: messages to people after a commit, in order, by a process of its own."""
