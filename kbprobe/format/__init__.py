"""The dataset format: items, setups, manifest, card and attribution."""
