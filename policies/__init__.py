"""Everything that decides: the core and the policies that plug into it. Imports nothing else of the house."""
