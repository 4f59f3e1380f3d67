"""Read models: what people look at, as typed data for pages, terminal and JSON. Nothing is written."""
