"""Tools that update generated files of the project."""
