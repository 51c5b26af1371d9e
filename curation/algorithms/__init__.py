"""Pure functions over arrays and Arrow buffers."""
