"""What would a step take if something in it took another time: changes, what they come to, and replays."""
