"""Names and lists of names in a sentence, and the lines of a message."""

import textwrap

WIDTH = 100  # of a message; the student's own lines are not wrapped


def subject(name, given=()):
    """The name of a result at the beginning of a sentence; given: the names of the arguments."""
    if name in given:
        return f"The returned `{name}`"
    return f"`{name}`" if name.isidentifier() else f"The {name.removeprefix('the ')}"


def listed(words):
    """ "B", "B and T", "B, T and K"."""
    words = list(words)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def cases_of(labels):
    """ "a", "a and with b", "a, with b and with c"; only the first three of many cases."""
    if len(labels) > 4:
        return f"{', with '.join(labels[:3])} and in {len(labels) - 3} other cases"
    return " and with ".join([", with ".join(labels[:-1]), labels[-1]] if len(labels) > 1 else labels)


def with_cases(text, cases):
    """The text of a mistake with the cases that show it: a mistake is in the code, and a case only shows it."""
    return f"{text} This shows {f'with {cases}' if cases else 'in the plain case'}."


def wrapped(text, width=WIDTH):
    """A message in lines of this width; lines of code and of tables are not wrapped."""
    return "\n".join(line if line.startswith(" ") else textwrap.fill(line, width) for line in text.splitlines())
