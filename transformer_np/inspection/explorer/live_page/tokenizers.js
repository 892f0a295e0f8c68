// From text to ids and back, as the Python classes of the same kinds do it.

const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const FIRST_BYTE = 4;
const FIRST_MERGE = FIRST_BYTE + 256;

// Python's white space differs from JavaScript's \s by a few characters; its \w is letters, numbers and "_".
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LETTERS = "[\\p{L}\\p{N}\\p{M}\\u200c\\u200d]+";
const WORD_OR_MARK = new RegExp(`${LETTERS}(?:[-‐'’]${LETTERS})*|[^${SPACE}]`, "gu");
const BPE_PIECE = new RegExp(
  "'(?:s|t|re|ve|m|ll|d)| ?[\\p{L}\\p{Nl}\\p{No}]{1,64}| ?\\p{Nd}{1,64}" +
    `| ?[^${SPACE}\\p{L}\\p{N}]{1,64}|[${SPACE}]{1,64}(?![^${SPACE}])|[${SPACE}]{1,64}`,
  "gu",
);
const OPENING = new Set("([{“‘«¿¡");
const CLOSING = new Set(",.!?;:…)]}”’»%");

const CUTS = { char: (text) => [...text], word: (text) => text.match(WORD_OR_MARK) ?? [] };
const JOINS = { char: (pieces) => pieces.join(""), word: joinWords };

// Words with spaces between them; a mark joins the word before it, an opening mark the word after it.
function joinWords(pieces) {
  let [text, opened, quoted] = ["", true, false];
  for (const piece of pieces) {
    let [opens, closes] = [OPENING.has(piece), CLOSING.has(piece)];
    if (piece === '"') [opens, closes, quoted] = [!quoted, quoted, !quoted];
    text += opened || closes ? piece : ` ${piece}`;
    opened = opens;
  }
  return text;
}

class VocabularyTokenizer {
  constructor({ kind, vocabulary, lowercase }) {
    Object.assign(this, { kind, vocabulary, lowercase });
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
  }
  // The pieces of a text as typed, with their ids; a piece that is not in the vocabulary has the id UNK.
  encode(text) {
    const pieces = CUTS[this.kind](text.normalize("NFC"));
    return pieces.map((piece) => ({ piece, id: this.ids.get(this.lowercase ? piece.toLowerCase() : piece) ?? UNK }));
  }
  decode(ids) {
    return JOINS[this.kind](ids.filter((id) => ![PAD, BOS, EOS].includes(id)).map((id) => this.vocabulary[id]));
  }
}

class BytePairTokenizer {
  constructor({ kind, vocabulary, merges }) {
    Object.assign(this, { kind, vocabulary });
    this.bytes = [...Array(FIRST_BYTE).fill([]), ...Array.from({ length: 256 }, (_, byte) => [byte])];
    for (const [left, right] of merges) this.bytes.push([...this.bytes[left], ...this.bytes[right]]);
    this.merged = new Map(merges.map((pair, i) => [pair.join(), FIRST_MERGE + i]));
  }
  encode(text) {
    const ids = (text.match(BPE_PIECE) ?? []).flatMap((piece) => this.encodePiece(piece));
    return ids.map((id) => ({ piece: this.vocabulary[id], id }));
  }
  encodePiece(piece) {
    let ids = Array.from(new TextEncoder().encode(piece), (byte) => FIRST_BYTE + byte);
    for (;;) {
      let first = Infinity; // the merge that was learned first
      for (let i = 0; i + 1 < ids.length; i++)
        first = Math.min(first, this.merged.get(`${ids[i]},${ids[i + 1]}`) ?? Infinity);
      if (first === Infinity) return ids;
      const merged = [];
      for (let i = 0; i < ids.length; i++) {
        const fits = i + 1 < ids.length && this.merged.get(`${ids[i]},${ids[i + 1]}`) === first;
        merged.push(fits ? first : ids[i]);
        if (fits) i++;
      }
      ids = merged;
    }
  }
  decode(ids) {
    return new TextDecoder().decode(Uint8Array.from(ids.flatMap((id) => this.bytes[id])));
  }
}

function tokenizerFrom(description) {
  return description.kind === "bpe" ? new BytePairTokenizer(description) : new VocabularyTokenizer(description);
}
