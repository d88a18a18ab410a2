"""Callbacks of training frameworks. Each file stands for one package, which is imported with it and not before."""
