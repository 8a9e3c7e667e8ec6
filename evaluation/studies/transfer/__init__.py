"""Transfer between probes: trained on each of several, tested on all of them."""
