"""Everything in a project as it is at one moment, kept by git without touching the user's, and the way back to it."""
