"""How the answers of one model vary over runs on the same questions."""
