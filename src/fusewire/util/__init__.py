"""Helpers without knowledge of breakers: files, git, processes, text."""
