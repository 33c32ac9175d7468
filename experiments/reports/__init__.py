"""Reports on runs: Markdown with pictures, and one HTML file."""
