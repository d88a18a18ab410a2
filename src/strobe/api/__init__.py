"""What `import strobe` offers to read a run: opening, every analysis as a method, SQL, imports and exports."""
