"""Steps: the iterations of the main loop, their classes, parts and outliers. Functions on arrays."""
