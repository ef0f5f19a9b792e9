"""What whoever runs a daemon sees of it: whether it lives and is ready, figures, its log. No data decide it."""
