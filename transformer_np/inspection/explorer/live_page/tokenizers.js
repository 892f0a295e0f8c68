// From text to ids and back, as the Python classes of the same kinds do it.

const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const FIRST_BYTE = 4;
const FIRST_MERGE = FIRST_BYTE + 256;

// Python's white space differs from JavaScript's \s by a few characters; its \w is letters, numbers and "_".
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const NO_WIDTH = /[\u200b\u2060\ufeff]/g; // signs that take no place on the screen
const LETTERS = "[\\p{L}\\p{N}\\p{M}\\u200c\\u200d]+";
const WORD_OR_MARK = new RegExp(`(${LETTERS}(?:[-‐'’]${LETTERS})*)|[^${SPACE}]`, "gu");
const SPACES = new RegExp(`[${SPACE}]+`, "g");
const ONLY_SPACE = new RegExp(`^[${SPACE}]*$`);
const LETTERS_OR_LINE = LETTERS.replace("]", "_]");
const PLAIN_WORD = new RegExp(`${LETTERS_OR_LINE}(?:[-‐'’]${LETTERS_OR_LINE})*`, "gu");
const BPE_PIECE = new RegExp(
  "'(?:s|t|re|ve|m|ll|d)| ?[\\p{L}\\p{Nl}\\p{No}]{1,64}| ?\\p{Nd}{1,64}" +
    `| ?[^${SPACE}\\p{L}\\p{N}]{1,64}|[${SPACE}]{1,64}(?![^${SPACE}])|[${SPACE}]{1,64}`,
  "gu",
);
const OPENING = new Set("([{“‘«¿¡");
const CLOSING = new Set(",.!?;:…)]}”’»%");

const QUOTE = '"';
const JOINED = "‿"; // the note of a mark for no space before or after it, where a space is usual

const usualGap = (opened, closes) => (opened || closes ? JOINED : " ");

// Whether a piece opens, and whether it closes. A quote does either: as the note before it says, or in turn.
function sides(mark, note, quoted) {
  if (mark !== QUOTE) return [OPENING.has(mark), CLOSING.has(mark)];
  const closes = note ? note === JOINED : quoted;
  return [!closes, closes];
}

// The note before a mark, the mark or word, the note after it; no note is an empty string.
function parts(piece) {
  const [before, after] = [piece[0], piece.at(-1)].map((end) =>
    [" ", JOINED].includes(end) && piece.length > 1 ? end : "",
  );
  const plain = piece.slice(before.length, piece.length - after.length);
  return plain ? [before, plain, after] : [before, JOINED, ""];
}

// Words and marks; a mark with other than the usual spaces around it gets notes.
function cutWords(text) {
  const pieces = [];
  let [opened, quoted, gap, end] = [true, false, JOINED, 0];
  for (const found of text.matchAll(WORD_OR_MARK)) {
    let [piece, word] = found;
    const before = gap;
    gap = found.index > end ? " " : JOINED;
    let [opens, closes] = sides(piece, "", quoted);
    if (pieces.length && gap !== usualGap(opened, closes)) {
      if (word !== undefined) {
        if (pieces.at(-1) === JOINED) pieces[pieces.length - 1] = before + JOINED; // two notes tell it from a note
        pieces[pieces.length - 1] += gap;
      } else {
        [opens, closes] = sides(piece, gap, quoted);
        piece = gap + piece;
      }
    }
    pieces.push(piece);
    [opened, end] = [opens, found.index + found[0].length];
    if (found[0] === QUOTE) quoted = opens;
  }
  return pieces;
}

// Words with spaces between them; a mark joins the word before it, an opening mark the word after it, unless it is noted.
function joinWords(pieces) {
  let [text, opened, quoted, after] = ["", true, false, ""];
  for (const piece of pieces) {
    const [note, mark, notedAfter] = parts(piece);
    const [opens, closes] = sides(mark, note, quoted);
    text += (note || after || usualGap(opened, closes)) === JOINED ? mark : ` ${mark}`;
    [opened, after] = [opens, notedAfter];
    if (mark === QUOTE) quoted = opens;
  }
  return text.replace(/^ +| +$/g, "");
}

const RULES = {
  char: { cut: (text) => [...text], join: (pieces) => pieces.join(""), plain: (piece) => piece },
  word: { cut: cutWords, join: joinWords, plain: (piece) => parts(piece)[1] },
};

class VocabularyTokenizer {
  unknown = UNK;
  // before, after: the ids around every text, of a model that reads [CLS] and [SEP]
  constructor({ kind, vocabulary, lowercase, before = [], after = [] }) {
    Object.assign(this, { kind, vocabulary, lowercase, before, after });
    Object.assign(this, RULES[kind]);
    this.ids = new Map(vocabulary.map((token, id) => [token, id]));
    this.plainIds = new Map(vocabulary.map((token, id) => [this.plain(token), id]).reverse()); // the first one counts
  }
  // The pieces of a text as typed, with their ids; a piece that is not in the vocabulary has the id UNK.
  encode(text) {
    const pieces = this.cut(text.normalize("NFC")).map((piece) => {
      const key = this.lowercase ? piece.toLowerCase() : piece;
      return { piece: this.plain(piece), id: this.ids.get(key) ?? this.plainIds.get(this.plain(key)) ?? UNK };
    });
    const special = (ids) => ids.map((id) => ({ piece: this.vocabulary[id], id }));
    return pieces.length ? [...special(this.before), ...pieces, ...special(this.after)] : [];
  }
  decode(ids) {
    return this.join(ids.filter((id) => ![PAD, BOS, EOS].includes(id)).map((id) => this.vocabulary[id]));
  }
}

class BytePairTokenizer {
  unknown = null;
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

// What the model has seen in training, as the Python class of this name has it.
class Seen {
  constructor({ words, spaces, lowercase }) {
    Object.assign(this, { words: words.split(" ").filter(Boolean), spaces, lowercase });
    this.known = new Set(this.words);
  }
  // The text with the white space of the training texts.
  fold(text) {
    if (!this.spaces) return text;
    const clean = text.replace(NO_WIDTH, "").replace(/\r\n?/g, "\n");
    if (ONLY_SPACE.test(clean)) {
      const breaks = clean.includes("\n") ? this.spaces.filter((run) => run.includes("\n")) : [];
      const shortest = breaks.reduce((a, b) => (b.length < a.length ? b : a), breaks[0] ?? "");
      return this.spaces.includes(clean) ? clean : shortest;
    }
    return clean.replace(SPACES, (run, at) => {
      const nearest = [run, ...(run.split("\n").length > 2 ? ["\n\n"] : []), ...(run.includes("\n") ? ["\n"] : [])];
      const inside = at > 0 && at + run.length < clean.length;
      return nearest.find((each) => this.spaces.includes(each)) ?? (inside ? " " : "");
    });
  }
  // The words of a text that are not in the training texts, each once; none if these are not known.
  // continued: the text goes on, so that at its end the beginning of a known word will do
  outside(text, continued = false) {
    if (!this.words.length) return [];
    const written = (this.lowercase ? text.toLowerCase() : text).normalize("NFC");
    const words = (written.match(PLAIN_WORD) ?? []).filter((word) => /\p{L}/u.test(word) && !/\p{N}/u.test(word));
    const unknown = [...new Set(words)].filter((word) => !this.known.has(word));
    const last = unknown.at(-1);
    const begun = continued && last !== undefined && last === words.at(-1) && /[\p{L}\p{M}]$/u.test(text);
    return begun && this.words.some((word) => word.startsWith(last)) ? unknown.slice(0, -1) : unknown;
  }
}

function tokenizerFrom(description) {
  const kinds = { bpe: BytePairTokenizer, pretrained: PretrainedTokenizer };
  return new (kinds[description.kind] ?? VocabularyTokenizer)(description);
}
