"""How a run is described: settings, flags, and errors that name them."""
