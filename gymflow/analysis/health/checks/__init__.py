"""One check a file: SQL, or a module whose docstring has the same fields and whose `find` yields what it found."""
