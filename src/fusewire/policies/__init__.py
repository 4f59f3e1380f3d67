"""Policies as data: one TOML file a seed, layered with the user's and the project's configuration."""
