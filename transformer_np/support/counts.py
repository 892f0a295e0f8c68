"""Numbers in sentences."""


def counted(number, what):
    """ "1 token", "1,024 tokens"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
