"""How requests come in and are queued: uvicorn, the application, access, and the traces that are shown."""
