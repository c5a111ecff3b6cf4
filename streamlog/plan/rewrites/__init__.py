"""Plans made cheaper, one file a rewrite."""
