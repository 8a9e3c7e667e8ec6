"""What executes the runs of a suite: this process, or workers that Ray starts."""
