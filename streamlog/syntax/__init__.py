"""Text to AST and back."""
