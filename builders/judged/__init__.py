"""What readers judged of pairs, and the models of it that decide which rows are asked."""
