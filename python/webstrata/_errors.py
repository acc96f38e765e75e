"""What goes wrong, in the words of the command line."""


class Error(Exception):
    """A command or a question failed. `printed` is what the command had printed: a check prints what it found."""

    printed: str = ""


class UsageError(Error, ValueError):
    """Arguments that make no sense: a text that is not a time, options that exclude each other."""


class NotInStore(Error, KeyError):
    """A URL that is in the store neither as a page nor as the target of a link."""

    # A KeyError shows the repr of its key.
    __str__ = Exception.__str__
