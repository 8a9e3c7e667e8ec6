"""Human annotation of a probe: exporting sheets and importing votes."""
