"""Who gives way when memory is short, and where it waits then."""
