"""Classification with a pretrained BERT: a folder in Hugging Face's layout instead of a training run."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..data import Seen
from ..models import Bert
from ..pretrained import PretrainedFolder
from .classify import Classifier

LONGEST_ANSWER = 30  # tokens


@dataclass(frozen=True)
class Answer:
    """The best answer to a question in a text, "" if the model finds none, and its probability.

    span, span_probability: the most likely part of the text, which is the answer if there is one
    no_answer: the probability that there is no answer;  left_out: the tokens of the text that were cut off
    """

    span: str
    span_probability: float
    no_answer: float
    left_out: int

    @property
    def text(self):
        return "" if self.no_answer > self.span_probability else self.span

    @property
    def probability(self):
        return max(self.no_answer, self.span_probability)


class PretrainedClassifier(Classifier):
    """A pretrained BERT with a head for a task, its tokenizer and labels.

    classifier = PretrainedClassifier.load("folder")
    classifier.probabilities("not bad at all")                # a BertForSequenceClassification: {"NEGATIVE": 0.01, …}
    classifier.tokens("Ada lives in London")                  # a BertForTokenClassification: [("ada", "PER", 0.99), …]
    classifier.answer("Where does Ada live?", "Ada lives in London.")   # a BertForQuestionAnswering: ("London", 0.9)
    """

    pairs, seen = None, Seen(spaces=None)

    @classmethod
    def load(cls, folder):
        """From a folder with a tokenizer.json; ValueError if its model has no head for one of these tasks."""
        found = PretrainedFolder(folder)
        config = found.model_for(Bert, "which has no classes; a BERT can have some").config
        if config.num_classes is config.token_classes is None and not config.span_head:
            how = "train one with `train classify --pretrained`"
            raise ValueError(f"{folder} holds a BERT without a head for a task; {how}")
        classifier = cls(found.model, found.tokenizer, found.labels, found.max_tokens)
        classifier.output = found.output
        return classifier

    def tokens(self, text):
        """The most likely label of each token of a text  ->  [(token, label, probability)], without special tokens. A
        piece that the tokenizer does not know is shown as it is in the text."""
        return self.tokens_of(self.read(text), text)

    def tokens_of(self, encoded, text):
        """As `tokens`, from the Encoded of `read`."""
        p = F.softmax(self._ask(self.model.classify_tokens, encoded))[0]  # (S, C)
        found = []
        for i, row, of, place in zip(encoded.ids, p, encoded.texts, encoded.places, strict=True):
            if of is not None:
                token = self.tokenizer.token(i)
                token = text[slice(*place)] if token == self.tokenizer.unknown_token else token
                found.append((token, self.labels[row.argmax()], float(row.max())))
        return found

    def answer(self, question, text):
        """The part of a text that answers a question best  ->  (answer, probability); ("", probability) if it is more
        likely that the text has no answer. See `find_answer`."""
        found = self.find_answer(question, text)
        return found.text, found.probability

    def find_answer(self, question, text):
        """The Answer to a question, with the probabilities of all tokens of the text and of [CLS], which stands for no
        answer (Devlin et al. 2019, §4.2 and §4.3):

            P(s, e) = softmax(starts)ₛ · softmax(ends)ₑ,    s ≤ e        P(no answer) = P([CLS], [CLS])

        An answer begins and ends with a whole word.

        Raises ValueError for an empty text, and for a question that leaves no room for it.
        """
        encoded = self.tokenizer.read(question, text, self.max_len, cut="only_second")
        inside = np.array([of == 1 for of in encoded.texts])  # (S,): the tokens of the text
        if not inside.any():
            raise ValueError("the text is empty: there is nothing to find the answer in")
        counted = inside.copy()
        counted[0] |= encoded.texts[0] is None  # [CLS]
        scores = self._ask(self.model.span_scores, encoded)[0]  # (S, 2)
        starts, ends = F.softmax(np.where(counted[:, None], scores, -np.inf).T)  # (S,) each
        p = np.triu((starts * inside)[:, None] * (ends * inside))  # (S, S)
        p -= np.triu(p, LONGEST_ANSWER)
        first, last = np.unravel_index(p.argmax(), p.shape)
        words = {encoded.words[first], encoded.words[last]} - {None}
        rows = enumerate(zip(encoded.places, encoded.texts, encoded.words, strict=True))
        places = [place for i, (place, of, word) in rows if i in (first, last) or (of == 1 and word in words)]
        span = text[min(places)[0] : max(places)[1]].strip()
        none = float(starts[0] * ends[0]) if counted[0] and not inside[0] else 0.0
        return Answer(span, float(p[first, last]), none, encoded.left_out)
