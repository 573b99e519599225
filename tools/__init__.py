"""What keeps generated files of the project current."""
