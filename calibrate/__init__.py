"""From measurements to what predicts them: kernel timings become profiles, and errors are reported."""
