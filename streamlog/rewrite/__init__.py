"""AST to AST."""
