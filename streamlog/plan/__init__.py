"""AST to pipelines."""
