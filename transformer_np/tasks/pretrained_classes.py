"""Classification with a pretrained BERT: a folder in Hugging Face's layout instead of a training run."""

from pathlib import Path

import numpy as np

from .. import functional as F
from ..models import Bert
from ..pretrained import PretrainedTokenizer
from ..support.files import read_json
from .classify import Classifier

LONGEST_ANSWER = 30  # tokens


class PretrainedClassifier(Classifier):
    """A pretrained BERT with a head for a task, its tokenizer and labels.

    classifier = PretrainedClassifier.load("folder")
    classifier.probabilities("not bad at all")                # a BertForSequenceClassification: {"NEGATIVE": 0.01, …}
    classifier.tokens("Ada lives in London")                  # a BertForTokenClassification: [("ada", "PER", 0.99), …]
    classifier.answer("Where does Ada live?", "Ada lives in London.")   # a BertForQuestionAnswering: ("London", 0.9)
    """

    @classmethod
    def load(cls, folder):
        """From a folder with a tokenizer.json; ValueError if its model has no head for one of these tasks."""
        folder = Path(folder)
        model = Bert.from_pretrained(folder)
        classes = model.config.num_classes or model.config.token_classes
        if classes is None and not model.config.span_head:
            raise ValueError(
                f"{folder} holds a BERT without a head for a task; train one with `train classify --pretrained`"
            )
        names = read_json(folder / "config.json").get("id2label")
        names = names if isinstance(names, dict) else {}
        labels = [str(names.get(str(i), f"LABEL_{i}")) for i in range(classes or 0)]
        return cls(model, PretrainedTokenizer(folder), labels)

    def tokens(self, text):
        """The most likely label of each token of a text  ->  [(token, label, probability)], without special tokens."""
        ids = self.encode(text)
        with self.model.evaluating():
            p = F.softmax(self.model.classify_tokens(np.array([ids])))[0]  # (S, C)
        special = set(self.tokenizer.encode(""))
        return [
            (self.tokenizer.token(i), self.labels[row.argmax()], float(row.max()))
            for i, row in zip(ids, p, strict=True)
            if i not in special
        ]

    def answer(self, question, text):
        """The part of a text that answers a question best  ->  (answer, probability)

            P(s, e) = softmax(starts)ₛ · softmax(ends)ₑ,    s ≤ e        (Devlin et al. 2019, §4.2)

        Raises ValueError for an empty text, and for a question that leaves no room for it.
        """
        ids, segments, places = self.tokenizer.encode_pair(question, text, self.max_len)
        inside = np.array([place is not None for place in places])  # (S,): the tokens of the text
        if not inside.any():
            raise ValueError("the text is empty: there is nothing to find the answer in")
        with self.model.evaluating():
            scores = self.model.span_scores(np.array([ids]), segments=np.array([segments]))[0]  # (S, 2)
        starts, ends = F.softmax(np.where(inside[:, None], scores, -np.inf).T)  # (S,) each
        p = np.triu(starts[:, None] * ends)  # (S, S)
        p -= np.triu(p, LONGEST_ANSWER)
        start, end = np.unravel_index(p.argmax(), p.shape)
        return text[places[start][0] : places[end][1]], float(p.max())
