"""A page about the art indexes of a server, or about what the benches measured."""

from importlib.metadata import version

__version__ = version("artidx-report")


class ReportError(Exception):
    """What a person can do something about: a sentence, a hint, and the exit code."""

    def __init__(self, code: int, message: str, hint: str = ""):
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
