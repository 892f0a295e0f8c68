// Sphinx's numbers; a page whose title has the words of the question comes before those that only use them.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score([, title, , , score]) {
    const stems = (text) => splitQuery(text.toLowerCase()).map((word) => new Stemmer().stemWord(word));
    const asked = stems(new URLSearchParams(location.search).get("q") ?? "").filter((word) => word.length > 1);
    const own = new Set(stems(title));
    return score + (20 * asked.filter((word) => own.has(word)).length) / Math.max(asked.length, own.size, 1);
  },
};
