"""What every part leans on: checks of arguments, files written whole, processes and their threads."""
