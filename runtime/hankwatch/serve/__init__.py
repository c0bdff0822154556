"""HTTP over what is written: REST, live streams, metrics. Owns no run (design "How it runs" 12).

Nothing is re-exported, because whoever imports this room's settings must not load a web framework.
"""
