"""Secrets in statements of an application, which must not be stored."""

import pgparse

from pgversus.statements.literals import with_literals
from pgversus.statements.parsing import parsed
from pgversus.statements.statement import Sample, StatementKind
from pgversus.text.redaction import code_without_secrets
from pgversus.text.sql import with_blank_comments


def has_secrets(sample: Sample) -> bool:
    """Return whether a value is a secret. It can be hidden only in SQL that shows that it is one."""
    text = with_literals(sample.text, sample.values)
    return code_without_secrets(text) != text


def text_without_secrets(text: str) -> str:
    """Return a text that may hold secrets with parameters in place of all its constants; others are unchanged.

    Unlike text in which only the secrets are hidden, it is still the same statement. A text that cannot be executed has
    its secrets hidden.
    """
    hidden = code_without_secrets(text)
    if hidden == text:
        return text
    if parsed(text).kind not in (StatementKind.READS, StatementKind.WRITES):
        return hidden
    # Comments may hold secrets as well.
    return with_blank_comments(pgparse.normalize(text))
