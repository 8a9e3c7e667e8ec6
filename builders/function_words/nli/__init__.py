"""NLI over function words: a premise from a corpus, and a hypothesis in which one word decides."""
