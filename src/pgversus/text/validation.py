"""Messages about documents that do not have the expected form."""

from pydantic import ValidationError


def first_problem(error: ValidationError) -> str:
    """Return the place and the reason of the first problem of a document."""
    # Without its input, which may be long or hold secrets.
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
