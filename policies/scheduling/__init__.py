"""Who is admitted next."""
