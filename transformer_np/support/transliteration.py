"""Text for a terminal or a pipe that cannot show every sign: no sign of a formula is lost.

`dx = (dx̂ − mean(dx̂)) / √(σ² + ε)` becomes `dx = (dx_hat - mean(dx_hat)) / sqrt(sigma² + epsilon)` in cp1252, which
has the ². What is no sign of a formula, such as 中, becomes its number, \\u4e2d.
"""

import codecs
import re
import unicodedata

NAME = "transliterate"  # for `errors=`
_SIGNS = {
    "−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-", "─": "-", "·": "*", "⊙": "*", "×": "x", "÷": "/", "±": "+-",
    "√": "sqrt", "Σ": "sum", "∑": "sum", "∏": "prod", "∫": "int", "∂": "d", "∇": "grad", "∞": "inf", "∝": "~",
    "≈": "~=", "≠": "!=", "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "⇒": "=>", "∈": "in", "‖": "||",
    "λ": "lambda", "Λ": "Lambda", "⌊": "floor(", "⌋": ")", "⌈": "ceil(", "⌉": ")", "′": "'", "⁄": "/",
    "\u0302": "_hat", "\u0304": "_bar", "\u0303": "_tilde", "§": "section ", "…": "...", "“": '"', "”": '"',
    "‘": "'", "’": "'", "´": "'", "✓": "+", "✗": "x", "◦": "o", "█": "#", "░": ".", "▁": "_", "␣": "_", "⏎": "\\n",
    "⇥": "\\t", "│": "|",
}  # fmt: skip


def _handler(error):
    """The replacement of the signs that cannot be encoded, and the place after them; see `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text, at = error.object, error.start
    word = _replaced(text[at], error.encoding)
    if at and _kind(text[at]) in ("<super>", "<sub>") and _kind(text[at - 1]) == _kind(text[at]):
        word = word[1:]  # 10⁻⁸ is 10^-8
    if re.fullmatch("[a-zA-Z]{2,}", word):  # keeps its distance: 2σ is no 2sigma
        before, after = text[:at][-1:], text[at + 1 :][:1]
        follows = _is_of_word(after) and _encoded(after, error.encoding) == after
        word = " " * _is_of_word(before) + word + " " * follows
    return word, at + 1


def _is_of_word(sign):
    return bool(sign) and unicodedata.category(sign) in ("Ll", "Lu", "Nd")


def _replaced(sign, encoding):
    if sign in _SIGNS:
        return _SIGNS[sign]
    if found := re.match(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)", unicodedata.name(sign, "")):
        return found[2].capitalize() if found[1] == "CAPITAL" else found[2].lower()
    kind, *parts = unicodedata.decomposition(sign).split() or [""]
    if kind:  # ² is <super> 2, é is e and an accent
        before = {"<super>": "^", "<sub>": "_"}.get(kind, "")
        parts = parts if kind.startswith("<") else [kind, *parts]
        signs = [chr(int(part, 16)) for part in parts]
        kept = [s for s in signs if s in _SIGNS or not unicodedata.combining(s)] or signs
        return before + "".join(_encoded(s, encoding) for s in kept)
    byte = ord(sign) - 0xDC00  # of a file name that is not UTF-8
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else sign.encode("ascii", "backslashreplace").decode()


def _kind(sign):
    return unicodedata.decomposition(sign).partition(" ")[0]


def _encoded(sign, encoding):
    try:
        sign.encode(encoding)
        return sign
    except UnicodeEncodeError:
        return _replaced(sign, encoding)


codecs.register_error(NAME, _handler)
