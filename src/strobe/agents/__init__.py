"""The service behind `strobe mcp`: tools with which an agent asks about runs, over MCP on stdin and stdout."""
