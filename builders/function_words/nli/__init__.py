"""NLI probes of function words: a premise from a corpus, a hypothesis that hinges on one word."""
