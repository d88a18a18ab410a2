"""What is recorded: the options, where their values come from, and how they travel into the program."""
