"""AST to facts about the program."""
