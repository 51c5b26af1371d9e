"""How a taxonomy changes: proposals, what a person decides of them, operations, versions and their files."""
