"""The project's files: snapshots, differences, checkpoints and rollback."""
