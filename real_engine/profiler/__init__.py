"""Times every kernel and whole steps of the engine on its device, as the engine itself runs them."""
