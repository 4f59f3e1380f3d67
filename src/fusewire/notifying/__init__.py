"""Notifications: people are told what the circuits did, after the commit, in order, by a process of its own."""
