"""What a run leaves behind, and what it shows while it lasts."""
