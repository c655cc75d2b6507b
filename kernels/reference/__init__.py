"""What each kernel computes, in plain torch: the yardstick of the others, and what runs where no GPU is."""
