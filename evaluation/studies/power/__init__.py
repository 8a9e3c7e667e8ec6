"""Power: how many clusters a difference between two models needs to be found."""
