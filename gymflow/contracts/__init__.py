"""What is stored or crosses a boundary, one noun a module. Nothing here imports the rest of the project."""
