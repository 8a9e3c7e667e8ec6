"""Orders: how far the answers to lettered questions depend on the order of the choices."""
