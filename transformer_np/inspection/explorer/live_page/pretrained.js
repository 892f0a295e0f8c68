// The tokenizer of a pretrained model, from the description in its tokenizer.json: an added token such as [MASK] is found
// first, then the text between them is normalised, cut into pieces, and each piece into tokens of the vocabulary.

const WHITE = "\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // Unicode's, as in Rust
const only = (pattern) => new RegExp(`^(?:${pattern})$`, "u");
const [IS_WHITE, IS_MARK, IS_OTHER] = [`[${WHITE}]`, "[!-\\/:-@\\[-`{-~\\p{P}]", "\\p{C}"].map(only);
const IDEOGRAPH =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;
const lower = (text) => Array.from(text, (letter) => letter.toLowerCase()).join("");
const withoutAccents = (text) => text.replace(/\p{Mn}/gu, "");
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
const patternOf = ({ String: plain, Regex: regex }) => new RegExp(regex ?? escaped(plain), "gu");
const trimmed = (text, left, right) =>
  text
    .replace(new RegExp(`${left ? `^[${WHITE}]+` : "^$"}`, "u"), "")
    .replace(new RegExp(right ? `[${WHITE}]+$` : "$^", "u"), "");

const NORMALIZERS = {
  NFC: (_, text) => text.normalize("NFC"),
  NFD: (_, text) => text.normalize("NFD"),
  NFKC: (_, text) => text.normalize("NFKC"),
  NFKD: (_, text) => text.normalize("NFKD"),
  Lowercase: (_, text) => lower(text),
  StripAccents: (_, text) => withoutAccents(text),
  Strip: ({ strip_left, strip_right }, text) => trimmed(text, strip_left, strip_right),
  Prepend: ({ prepend }, text) => (text ? prepend + text : text),
  Replace: ({ pattern, content }, text) => text.replace(patternOf(pattern), () => content),
  BertNormalizer: ({ clean_text, handle_chinese_chars, strip_accents, lowercase }, text) => {
    if (clean_text)
      text = Array.from(text, (letter) =>
        "\t\n\r".includes(letter)
          ? " "
          : letter === "\ufffd" || IS_OTHER.test(letter)
            ? ""
            : letter.replace(IS_WHITE, " "),
      ).join("");
    if (handle_chinese_chars) text = text.replace(IDEOGRAPH, " $& ");
    if (strip_accents ?? lowercase) text = withoutAccents(text.normalize("NFD"));
    return lowercase ? lower(text) : text;
  },
  Sequence: ({ normalizers }, text, first) => normalizers.reduce((made, each) => normalised(each, made, first), text),
};
const normalised = (rule, text, first) => (rule ? NORMALIZERS[rule.type](rule, text, first) : text);

// Cut where the pattern is found; what becomes of the found text is `behavior`.
function split(text, pattern, behavior, invert = false) {
  const parts = []; // [text, whether it is a separator]
  let end = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) {
    if (!found) continue;
    if (index > end) parts.push([text.slice(end, index), invert]);
    parts.push([found, !invert]);
    end = index + found.length;
  }
  if (end < text.length) parts.push([text.slice(end), invert]);
  const pieces = [];
  let [before, ahead] = [false, ""]; // whether the last part was a separator; a separator for the next piece
  for (const [part, separates] of parts) {
    const joins =
      pieces.length &&
      ((behavior === "MergedWithPrevious" && separates && !before) ||
        (behavior === "Contiguous" && separates && before));
    if (behavior === "MergedWithNext" && separates) {
      if (ahead) pieces.push(ahead);
      ahead = part;
    } else if (joins) pieces[pieces.length - 1] += part;
    else if (behavior !== "Removed" || !separates) {
      pieces.push(ahead + part);
      ahead = "";
    }
    before = separates;
  }
  return ahead ? [...pieces, ahead] : pieces;
}

const GPT2_PIECE = new RegExp(
  `'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^${WHITE}\\p{L}\\p{N}]+|[${WHITE}]+(?![^${WHITE}])|[${WHITE}]+`,
  "gu",
);
// A byte as a letter, as GPT-2 writes it: printable ones as they are, the others from U+0100 on.
const LETTER_OF = (() => {
  const printable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();
const BYTE_OF = new Map(LETTER_OF.map((letter, byte) => [letter, byte]));

const CUTS = {
  ByteLevel: ({ add_prefix_space, use_regex }, text) => {
    if (add_prefix_space && !text.startsWith(" ")) text = ` ${text}`;
    const pieces = use_regex === false ? [text] : split(text, GPT2_PIECE, "Isolated");
    return pieces.map((piece) => Array.from(new TextEncoder().encode(piece), (byte) => LETTER_OF[byte]).join(""));
  },
  Split: ({ pattern, behavior, invert }, text) => split(text, patternOf(pattern), behavior, invert),
  Digits: ({ individual_digits }, text) => split(text, /\p{N}/gu, individual_digits ? "Isolated" : "Contiguous"),
  Punctuation: ({ behavior }, text) => split(text, new RegExp(IS_MARK.source.slice(4, -2), "gu"), behavior),
  Whitespace: (_, text) =>
    text.match(new RegExp(`[\\p{L}\\p{N}\\p{M}\\p{Pc}]+|[^\\p{L}\\p{N}\\p{M}\\p{Pc}${WHITE}]+`, "gu")) ?? [],
  WhitespaceSplit: (_, text) => split(text, new RegExp(`[${WHITE}]`, "gu"), "Removed"),
  BertPreTokenizer: (_, text) =>
    CUTS.WhitespaceSplit(_, text).flatMap((word) => CUTS.Punctuation({ behavior: "Isolated" }, word)),
  Metaspace: ({ replacement, prepend_scheme, split: cuts }, text, first) => {
    text = text.replaceAll(" ", replacement);
    const prepends = prepend_scheme === "always" || (prepend_scheme === "first" && first);
    if (prepends && !text.startsWith(replacement)) text = replacement + text;
    return cuts === false ? [text] : split(text, new RegExp(escaped(replacement), "gu"), "MergedWithNext");
  },
  Sequence: ({ pretokenizers }, text, first) =>
    pretokenizers.reduce(
      (pieces, each) => pieces.flatMap((piece, i) => (piece ? cutBy(each, piece, first && i === 0) : [])),
      [text],
    ),
};
const cutBy = (rule, text, first) => (rule ? CUTS[rule.type](rule, text, first) : [text]);

// What a text of pieces becomes; `goes` on: it follows another text, whose end is not its beginning
const DECODERS = {
  ByteLevel: (_, pieces) => {
    const bytes = pieces.flatMap((piece) =>
      [...piece].every((letter) => BYTE_OF.has(letter))
        ? Array.from(piece, (letter) => BYTE_OF.get(letter))
        : [...new TextEncoder().encode(piece)],
    );
    return [new TextDecoder().decode(Uint8Array.from(bytes))];
  },
  WordPiece: ({ prefix, cleanup }, pieces) =>
    pieces.map((piece, i) => {
      const joined = i && piece.startsWith(prefix) ? piece.slice(prefix.length) : i ? ` ${piece}` : piece;
      return cleanup ? cleaned(joined) : joined;
    }),
  Metaspace: ({ replacement, prepend_scheme }, pieces, goes) =>
    pieces.map((piece, i) => {
      const text = piece.replaceAll(replacement, " ");
      return i === 0 && !goes && prepend_scheme !== "never" ? text.replace(/^ /, "") : text;
    }),
  Replace: ({ pattern, content }, pieces) => pieces.map((piece) => piece.replace(patternOf(pattern), () => content)),
  ByteFallback: (_, pieces) => {
    const made = [];
    let bytes = [];
    const flush = () => {
      if (!bytes.length) return;
      try {
        made.push(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes)));
      } catch {
        made.push(...bytes.map(() => "\ufffd"));
      }
      bytes = [];
    };
    for (const piece of pieces) {
      const byte = piece.match(/^<0x([0-9A-F]{2})>$/)?.[1];
      if (byte) bytes.push(parseInt(byte, 16));
      else {
        flush();
        made.push(piece);
      }
    }
    flush();
    return made;
  },
  Fuse: (_, pieces) => [pieces.join("")],
  Strip: ({ content, start, stop }, pieces, goes) =>
    pieces.map((piece, i) => {
      let [from, to] = [0, piece.length];
      while (from < start && !(goes && i === 0) && piece[from] === content) from++;
      while (piece.length - to < stop && piece[to - 1] === content) to--;
      return piece.slice(from, to);
    }),
  Sequence: ({ decoders }, pieces, goes) =>
    decoders.reduce((made, each) => DECODERS[each.type](each, made, goes), pieces),
};
function cleaned(text) {
  const marks = [" .", " ?", " !", " ,", " ' ", " n't", " 'm", " do not", " 's", " 've", " 're"];
  const becomes = [".", "?", "!", ",", "'", "n't", "'m", " don't", "'s", "'ve", "'re"];
  return marks.reduce((made, mark, i) => made.replaceAll(mark, becomes[i]), text);
}

class PretrainedTokenizer {
  kind = "pretrained";

  // tokens: the vocabulary by id;  model: { type, merges: [left id, right id, id] … };  before, after: special ids
  constructor(description) {
    Object.assign(this, description);
    this.ids = new Map(this.tokens.map((token, id) => [token, id]).filter(([token]) => token !== null));
    this.special = new Set(this.added.filter(({ special }) => special).map(({ id }) => id));
    this.unknown = this.ids.get(this.model.unk_token) ?? null;
    this.merged = new Map(this.model.merges?.map(([left, right, id], rank) => [left * 2 ** 26 + right, { rank, id }]));
    const wholes = new Map(this.added.map(({ id, content }) => [id, content]));
    this.vocabulary = this.tokens.map((token, id) => wholes.get(id) ?? this.readable(token ?? ""));
  }
  // A token as a person reads it: bytes that are letters as these, and a space for its sign.
  readable(token) {
    if (!this.bytewise) return token.replaceAll("▁", " ");
    const text = DECODERS.ByteLevel(null, [token])[0];
    return text.includes("\ufffd") ? token.replaceAll("Ġ", " ") : text;
  }
  // The text cut at added tokens: [text, id or null]
  cutAtAdded(text, normalized) {
    const found = this.added.filter((token) => token.normalized === normalized);
    if (!found.length) return [[text, null]];
    const word = "[\\p{L}\\p{N}\\p{M}_]";
    const ways = found
      .map((token) => ({ ...token, as: normalized ? normalised(this.normalizer, token.content, true) : token.content }))
      .filter(({ as }) => as)
      .sort((a, b) => b.as.length - a.as.length)
      .map(({ as, lstrip, rstrip, single_word: alone }) => {
        const plain = alone ? `(?<!${word})${escaped(as)}(?!${word})` : escaped(as);
        return `${lstrip ? `[${WHITE}]*` : ""}(?:${plain})${rstrip ? `[${WHITE}]*` : ""}`;
      });
    const byText = new Map(
      found.map(({ content, id }) => [normalized ? normalised(this.normalizer, content, true) : content, id]),
    );
    const pattern = new RegExp(ways.join("|"), "gu");
    const parts = [];
    let end = 0;
    for (const { 0: match, index } of text.matchAll(pattern)) {
      if (index > end) parts.push([text.slice(end, index), null]);
      parts.push([match, byText.get(match) ?? byText.get(trimmed(match, true, true))]);
      end = index + match.length;
    }
    if (end < text.length || !parts.length) parts.push([text.slice(end), null]);
    return parts;
  }
  encode(text) {
    const ids = [...this.before];
    let first = true;
    for (const [part, special] of this.cutAtAdded(text, false)) {
      if (special !== null) ids.push(special);
      else
        for (const [plain, id] of this.cutAtAdded(normalised(this.normalizer, part, first), true)) {
          if (id !== null) ids.push(id);
          else if (plain)
            for (const piece of cutBy(this.pre_tokenizer, plain, first)) ids.push(...this.encodePiece(piece));
        }
      first = false;
    }
    if (ids.length === this.before.length) return [];
    return [...ids, ...this.after].map((id) => ({ id, piece: this.vocabulary[id] }));
  }
  encodePiece(piece) {
    if (!piece) return [];
    if (this.model.type === "WordLevel") return [this.ids.get(piece) ?? this.unknown].filter((id) => id !== null);
    return this.model.type === "WordPiece" ? this.longestFirst(piece) : this.byMerging(piece);
  }
  // WordPiece: the longest token that the rest of the word begins with
  longestFirst(word) {
    const letters = [...word];
    if (letters.length > this.model.max_input_chars_per_word) return [this.unknown];
    const ids = [];
    for (let from = 0; from < letters.length;) {
      let to = letters.length;
      let id;
      for (; to > from; to--) {
        id = this.ids.get((from ? this.model.continuing_subword_prefix : "") + letters.slice(from, to).join(""));
        if (id !== undefined) break;
      }
      if (to === from) return [this.unknown];
      ids.push(id);
      from = to;
    }
    return ids;
  }
  // Byte pairs: the pair that was learned first is merged, the leftmost one first
  byMerging(piece) {
    if (this.model.ignore_merges && this.ids.has(piece)) return [this.ids.get(piece)];
    const ids = [];
    for (const letter of piece) {
      const id = this.ids.get(letter);
      if (id !== undefined) ids.push(id);
      else {
        const bytes = Array.from(new TextEncoder().encode(letter), (byte) =>
          this.ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
        );
        if (this.model.byte_fallback && bytes.every((byte) => byte !== undefined)) ids.push(...bytes);
        else if (this.unknown !== null && !(this.model.fuse_unk && ids.at(-1) === this.unknown)) ids.push(this.unknown);
      }
    }
    for (;;) {
      let [best, at] = [null, -1];
      for (let i = 0; i + 1 < ids.length; i++) {
        const found = this.merged.get(ids[i] * 2 ** 26 + ids[i + 1]);
        if (found && (!best || found.rank < best.rank)) [best, at] = [found, i];
      }
      if (!best) return ids;
      ids.splice(at, 2, best.id);
    }
  }
  // goes: whether the text follows another one, so that its first space is one
  decode(ids, goes = false) {
    const pieces = ids.filter((id) => !this.special.has(id)).map((id) => this.tokens[id] ?? "");
    if (!pieces.length) return "";
    if (!this.decoder) return pieces.join(" ");
    if (goes && this.decoder.type === "WordPiece") pieces.unshift("");
    return DECODERS[this.decoder.type](this.decoder, pieces, goes).join("");
  }
}
