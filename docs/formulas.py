"""Formulas of docstrings, written in Unicode, as MathML: browsers draw it themselves, without a network.

dx = (dx̂ − mean(dx̂)) / √(σ² + ε),    dW_h = Σ h_{t−1}ᵀ da_t,    10000^(2i / d_model)
"""

import ast
import re
from html import escape

RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀᵗⁿ", "0123456789−Ttn", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₜₛ", "0123456789ijkts", strict=True))
SHIFTED = "".join([*RAISED, *LOWERED])
LETTERS = f"[^\\W\\d_{SHIFTED}]+"
WORD = f"{LETTERS}[\u0300-\u036f]*"
TOKEN = re.compile(
    f"(?P<space> +)|(?P<number>\\d+(?:\\.\\d+)?)|(?P<word>{WORD}'*(?:_{LETTERS})*)|(?P<shifted>[{SHIFTED}]+)|."
)
SIGN = 'stretchy="false" lspace="0" rspace="0"'  # the spaces are those that are written
PART = re.compile(f"\\d+|{WORD}(?:_(?:{LETTERS}|\\d+))?")  # what a root, ^ or _ takes without brackets


def is_formula(rows):
    """Whether an indented block has an equation that is no Python code."""
    text = "\n".join(rows)
    return bool(re.search(r"[=≈] ", text)) and not is_code(text)


def is_code(text):
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def as_mathml(text):
    """The lines of a formula, one below the other. A line may be broken where two spaces or more are."""
    lines = ([f"<math>{_row(part)}</math>" for part in re.split(" {2,}", line.strip())] for line in text.splitlines())
    return "".join(f'<p class="formula">{" &emsp; ".join(line)}</p>\n' for line in lines)


def _row(text):
    """The elements of a formula or of a part of it."""
    made, at = [], 0
    while at < len(text):
        found = TOKEN.match(text, at)
        token, kind, at = found[0], found.lastgroup, found.end()
        if kind == "space":
            made.append('<mspace width="0.3em"/>')
        elif kind == "shifted":
            raised = token[0] in RAISED
            made.append(_shifted(made.pop(), raised, f"<mn>{''.join((RAISED | LOWERED)[c] for c in token)}</mn>"))
        elif kind == "word":
            made.append(_named(token))
        elif token in "√^_":
            part, at = _part(text, at)
            row = f"<mrow>{_row(part)}</mrow>"
            made.append(f"<msqrt>{row}</msqrt>" if token == "√" else _shifted(made.pop(), token == "^", row))
        else:
            made.append(
                f"<mn>{token}</mn>" if kind else f'<mo stretchy="false" lspace="0" rspace="0">{escape(token)}</mo>'
            )
    return "".join(made)


def _shifted(base, raised, part):
    """A base with an exponent or an index, the exponent above the index."""
    if raised and base.startswith("<msub>"):
        return f"<msubsup>{base[6:-7]}{part}</msubsup>"
    tag = "msup" if raised else "msub"
    return f"<{tag}>{base}{part}</{tag}>"


def _named(word):
    """A name: of one letter, or d and a letter, in italics; an index behind _ is lowered, unless both are words."""
    if word == "Σ":
        return f"<mo {SIGN}>Σ</mo>"
    name, *indices = word.split("_")
    if indices and len(name) > 2 and len(indices[0]) > 3:
        name, indices = word, []
    letters = re.sub("[\u0300-\u036f']", "", name)
    italic = ' class="italic"' * (len(letters) == 1 < len(name) or (len(letters) == 2 and letters[0] == "d"))
    made = f"<mi{italic}>{escape(name)}</mi>"
    for index in indices:
        made = f"<msub>{made}<mi>{index}</mi></msub>"
    return made


def _part(text, at):
    """What a root, ^ or _ takes from this place, without its brackets, and the place after it."""
    if text[at] not in "({":
        found = PART.match(text, at)
        return found[0], found.end()
    depth, end = 1, at + 1
    while depth:
        depth += (text[end] in "({") - (text[end] in ")}")
        end += 1
    return text[at + 1 : end - 1], end
