"""Events to batches: what may be decided when."""
