"""Text corpora: documents, paragraphs, sentences, tokens, and premise/hypothesis pairs."""
