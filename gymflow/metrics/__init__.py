"""Statistics: pure functions, and `.sql` files over the store's views. Undefined is null, never zero."""
