"""What agents learn beside the papers' figures: gymnasium, games, parts of agents."""
