"""The one error of everything that reads bytes here."""


class UndecodableError(ValueError):
    """The bytes are not what they should be; the text says what was expected, for a message to a user."""
