"""How graphs are shown. Everything here reads the graph; nothing runs it."""
