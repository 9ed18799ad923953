"""JSON that somebody else wrote."""

import json


def parse_json(text: str):
    """The value of a text; ValueError for what is none, for thousands of digits, for a bottomless nest."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
