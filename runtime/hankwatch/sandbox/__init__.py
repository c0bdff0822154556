"""One worker process for templates, Zod texts and schemas; see ``sandbox.Sandbox``.

Nothing is imported here: the worker starts through this package and its start-up time counts.
"""
