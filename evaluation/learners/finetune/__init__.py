"""Fine-tuning of whole networks: for choices, for labels, and masked LMs over candidates."""
