"""What people look at, collected from store and rules for pages, terminal and JSON alike. Nothing is written."""
