"""Text while it is generated: from tokens that come one by one to pieces of text that can be shown."""

INCOMPLETE = "\ufffd"  # a decoder's text for an incomplete character


def text_pieces(decode, prompt, tokens):
    """Yield the text of the tokens piece by piece, as soon as it is certain.

    decode: from a list of ids to their text
    prompt: the ids before the first token
    tokens: an iterable of ids

    A tokenizer may write a token differently after other tokens than alone, for example without its space. So each
    token is decoded together with those before it. Tokens with a part of a character wait for the rest of it.
    """
    before, waiting = list(prompt), []
    for token in tokens:
        waiting.append(token)
        piece = _after(decode, before, waiting)
        if piece and not piece.endswith(INCOMPLETE):
            yield piece
            before, waiting = waiting, []
    if waiting and (piece := _after(decode, before, waiting)):
        yield piece


def _after(decode, before, ids):
    """The text that these ids add to the text of those before."""
    return decode(before + ids)[len(decode(before)) :]


def until(stop, pieces):
    """Yield the pieces up to the first occurrence of `stop`, which may be spread over several, and then end."""
    held = ""  # may be the beginning of `stop`
    for piece in pieces:
        held += piece
        before, found, _ = held.partition(stop)
        if found:
            yield before
            return
        certain = len(held) - len(stop) + 1
        if certain > 0:
            yield held[:certain]
            held = held[certain:]
    yield held
