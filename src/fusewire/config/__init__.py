"""Configuration: settings in layers, policies as TOML, constraint files, and the compiled rules of a project."""
