"""Charts and timelines, drawn by the server as SVG."""
