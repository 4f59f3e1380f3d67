"""What an iteration changed: two snapshots of the project's tree, and their difference."""
