"""What a step costs: from its shape to nanoseconds."""
