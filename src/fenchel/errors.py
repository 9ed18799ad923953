"""The error of every file that cannot be read: data, templates, traces, models."""


class DataError(ValueError):
    """Malformed input, as the sentence `source:line: message`.

    source : name of the file, or "<stdin>"
    line   : number of the offending line from 1, or None where the file as a whole is at fault
    """

    def __init__(self, source, line, message):
        super().__init__(source, line, message)
        self.source = source
        self.line = line
        self.message = message

    def __str__(self):
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.message}"
