"""What makes the simulator predict a real engine: profiles, fits, measured runs, errors."""
