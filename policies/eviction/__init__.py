"""Which cached content goes first when memory is short."""
