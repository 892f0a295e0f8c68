"""Numbers in sentences."""


def counted(number, what):
    """ "1 token", "1,024 tokens"."""
    return f"{number:,} {what}{'s'[: number != 1]}"
