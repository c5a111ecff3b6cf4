"""How far each goal may lie from its head, and what follows for the program."""
