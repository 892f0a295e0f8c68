"""The built-in corpus: English sentences and their Brazilian Portuguese translation, made by a small grammar around the
lecture's own sentence.

A sentence is a subject, a verb in some tense, what follows the verb, and a time; a statement, a negation or a question:

    Lucas | will travel | to Brazil     | next year          Did Ana have lunch | at home | yesterday?
    Lucas | vai viajar  | para o Brasil | no ano que vem         Ana almoçou    | em casa | ontem?

The English determines the Portuguese. Where English leaves it open, one reading holds throughout: "you" is one person,
and whoever has no known gender takes the masculine, as Portuguese grammar has it (I, you, we, they, the teacher).
"""

from dataclasses import dataclass
from itertools import chain, product

from .portuguese import ELE, ELES, EU, IMPERFECT, NÓS, PRESENT, agree, gerund, preterite, with_em

LECTURE_SENTENCE = "Lucas will travel in December"
LECTURE_TRANSLATION = "Lucas vai viajar em dezembro"

# --- words: subjects -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """be: the English person, by its form of "to be"; person: the Portuguese one, another for "you"; gender: m or f"""

    english: str
    portuguese: str
    be: str
    person: int
    gender: str = "m"

    def described(self, adjectives):
        """(English, Portuguese) of each adjective said of the subject, plain and with "very"."""
        plural = self.person in (NÓS, ELES)
        plain = [(english, agree(portuguese, self.gender, plural)) for english, portuguese in adjectives]
        return [*plain, *((f"very {english}", f"muito {portuguese}") for english, portuguese in plain)]


SUBJECTS = (
    Subject("Lucas", "Lucas", "is", ELE),
    Subject("Ana", "Ana", "is", ELE, "f"),
    Subject("Maria", "Maria", "is", ELE, "f"),
    Subject("I", "eu", "am", EU),
    Subject("you", "você", "are", ELE),
    Subject("he", "ele", "is", ELE),
    Subject("she", "ela", "is", ELE, "f"),
    Subject("we", "nós", "are", NÓS),
    Subject("they", "eles", "are", ELES),
    Subject("the teacher", "o professor", "is", ELE),
    Subject("my sister", "minha irmã", "is", ELE, "f"),
    Subject("my sisters", "minhas irmãs", "are", ELES, "f"),
    Subject("my parents", "meus pais", "are", ELES),
    Subject("the students", "os alunos", "are", ELES),
    Subject("the girls", "as meninas", "are", ELES, "f"),
    Subject("Ana and I", "Ana e eu", "are", NÓS),
    Subject("Ana and Maria", "Ana e Maria", "are", ELES, "f"),
)

# --- words: what follows a verb, as (English, Portuguese) ------------------------------------------------------------

NOTHING = ("", "")
A_LOT = ("a lot", "muito")
PORTUGUESE = ("Portuguese", "português")

# English with "to", English with "in" or "at", the Portuguese noun with its article where it has one
PLACES = {
    "Brazil": ("to Brazil", "in Brazil", "o Brasil"),
    "Lisbon": ("to Lisbon", "in Lisbon", "Lisboa"),
    "the US": ("to the United States", "in the United States", "os Estados Unidos"),
    "the beach": ("to the beach", "at the beach", "a praia"),
    "the hospital": ("to the hospital", "at the hospital", "o hospital"),
    "school": ("to school", "at school", "a escola"),
    "home": ("home", "at home", "casa"),
}


def to(*places):
    """Where somebody goes: "to the beach" is "para a praia"."""
    return [(PLACES[place][0], f"para {PLACES[place][2]}") for place in places]


def at(*places):
    """Where somebody is: "at the beach" is "na praia"."""
    return [(PLACES[place][1], with_em(PLACES[place][2])) for place in places]


NOUNS = {"car": ("carro", "m"), "bicycle": ("bicicleta", "f"), "book": ("livro", "m")}
QUALITIES = {"new": "novo", "old": "velho"}
ARTICLES = {"m": ("um", "o"), "f": ("uma", "a")}


def things(*nouns):
    """Noun phrases: "a new bicycle" is "uma bicicleta nova", the quality after the noun and in its gender."""
    phrases = []
    for noun, quality in product(nouns, (None, *QUALITIES)):
        portuguese, gender = NOUNS[noun]
        um, o = ARTICLES[gender]
        if quality:
            noun, portuguese = f"{quality} {noun}", f"{portuguese} {agree(QUALITIES[quality], gender)}"
        a = "an" if noun[0] in "aeiou" else "a"
        phrases += [(f"{a} {noun}", f"{um} {portuguese}"), (f"the {noun}", f"{o} {portuguese}")]
    return phrases


def with_places(phrases, *places):
    """Every phrase by itself and at every place: "the bus", "the bus at home"."""
    placed = product(phrases, at(*places))
    return [*phrases, *((f"{what} {where}", f"{que} {onde}") for (what, que), (where, onde) in placed)]


FOOD = [("an apple", "uma maçã"), ("fish", "peixe"), ("the cake", "o bolo")]
MEALS = [("dinner", "o jantar"), ("coffee", "café"), ("a cake", "um bolo")]
GAMES = [("football", "futebol"), ("cards", "cartas")]
INSTRUMENTS = [("the guitar", "violão"), ("the piano", "piano")]
AWAITED = [("the bus", "o ônibus"), ("the train", "o trem"), ("the doctor", "o médico")]

STATES = (("tired", "cansado"), ("busy", "ocupado"), ("sick", "doente"), ("happy", "feliz"))
TRAITS = (("tall", "alto"), ("famous", "famoso"), ("young", "jovem"))

# --- words: times ----------------------------------------------------------------------------------------------------

DAYS, YEARS = ("days",), ("years",)
EITHER = DAYS + YEARS


@dataclass(frozen=True)
class Time:
    """tenses: the tenses it goes with; spans: whether it suits what one does for days, for years, or both"""

    words: tuple
    tenses: tuple
    spans: tuple


TIMES = (
    Time(("in December", "em dezembro"), ("past", "future"), YEARS),
    Time(("last year", "no ano passado"), ("past",), YEARS),
    Time(("next year", "no ano que vem"), ("future",), YEARS),
    Time(("last week", "na semana passada"), ("past",), EITHER),
    Time(("next week", "na semana que vem"), ("future",), EITHER),
    Time(("on Monday", "na segunda-feira"), ("past", "future"), DAYS),
    Time(("on Saturday", "no sábado"), ("past", "future"), DAYS),
    Time(("yesterday", "ontem"), ("past",), DAYS),
    Time(("today", "hoje"), ("past", "present", "future"), DAYS),
    Time(("now", "agora"), ("present",), EITHER),
    Time(("tomorrow", "amanhã"), ("future",), DAYS),
)


def times(tense, spans):
    """No time at all, or one that goes with the tense and suits one of the spans."""
    return [NOTHING, *(time.words for time in TIMES if tense in time.tenses and set(spans) & set(time.spans))]


# --- words: verbs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verb:
    """english: base form, past and -ing; portuguese: the infinitive; spans: as for a Time; complements: what follows"""

    english: tuple
    portuguese: str
    spans: tuple
    complements: list


VERBS = (
    Verb(("travel", "traveled", "traveling"), "viajar", EITHER, [NOTHING, A_LOT, *to("Brazil", "Lisbon", "the US")]),
    Verb(("work", "worked", "working"), "trabalhar", EITHER, [NOTHING, A_LOT, *at("home", "Lisbon", "the hospital")]),
    Verb(("study", "studied", "studying"), "estudar", EITHER, [A_LOT, PORTUGUESE, *at("home", "school")]),
    Verb(("go", "went", "going"), "ir", DAYS, to("the beach", "the hospital", "school", "home")),
    Verb(("sleep", "slept", "sleeping"), "dormir", DAYS, [NOTHING, A_LOT, *at("home", "the hospital", "the beach")]),
    Verb(("have lunch", "had lunch", "having lunch"), "almoçar", DAYS, [NOTHING, *at("home", "school", "the beach")]),
    Verb(("eat", "ate", "eating"), "comer", DAYS, [A_LOT, *FOOD]),
    Verb(("make", "made", "making"), "fazer", DAYS, with_places(MEALS, "home")),
    # what is played decides between jogar and tocar
    Verb(("play", "played", "playing"), "jogar", DAYS, with_places(GAMES, "school", "the beach")),
    Verb(("play", "played", "playing"), "tocar", DAYS, with_places(INSTRUMENTS, "home")),
    # a preposition that Portuguese does without
    Verb(("wait for", "waited for", "waiting for"), "esperar", DAYS, with_places(AWAITED, "home")),
    Verb(("buy", "bought", "buying"), "comprar", EITHER, things("car", "bicycle")),
    Verb(("read", "read", "reading"), "ler", DAYS, things("book")),
)

# --- clauses: what is said of a subject ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clause:
    """What is said of a subject, before it becomes a statement, a negation or a question.

    statement: the English verb as a statement has it, "wants to travel"
    auxiliary, rest: the same as "not" and questions take it apart, "does" and "want to travel"
    verb: the Portuguese verb, the same in all three, "quer viajar"
    complement, time: (English, Portuguese) each
    """

    statement: str
    auxiliary: str
    rest: str
    verb: str
    complement: tuple
    time: tuple


VERB_TENSES = {"will": "future", "did": "past", "is -ing": "present", "want to": "future", "can": "future"}


def verb_clauses(subject):
    """Everything the subject does."""
    for verb, (how, tense) in product(VERBS, VERB_TENSES.items()):
        words = (*english_verb(subject, how, *verb.english), portuguese_verb(subject, how, verb.portuguese))
        for complement, time in product(verb.complements, times(tense, verb.spans)):
            yield Clause(*words, complement, time)


def english_verb(subject, how, base, past, progressive):
    """(statement, auxiliary, rest)"""
    match how:
        case "did":
            return past, "did", base
        case "is -ing":
            return f"{subject.be} {progressive}", subject.be, progressive
        case "want to" if subject.be == "is":
            return f"wants to {base}", "does", f"want to {base}"
        case "want to":
            return f"want to {base}", "do", f"want to {base}"
        case _:
            return f"{how} {base}", how, base


def portuguese_verb(subject, how, infinitive):
    match how:
        case "did":
            return preterite(infinitive)[subject.person]
        case "is -ing":
            return f"{PRESENT['estar'][subject.person]} {gerund(infinitive)}"
        case "will" if infinitive == "ir":  # one says vai, not vai ir
            return PRESENT["ir"][subject.person]
        case _:
            auxiliary = {"will": "ir", "want to": "querer", "can": "poder"}[how]
            return f"{PRESENT[auxiliary][subject.person]} {infinitive}"


def be_clauses(subject):
    """How and where the subject is, which is estar, and what it is like, which is ser."""
    kinds = (
        ("estar", subject.described(STATES), ("present", "past", "future"), DAYS),
        ("estar", at(*PLACES), ("present", "past", "future"), EITHER),
        ("ser", subject.described(TRAITS), ("present", "past"), ()),
    )
    for copula, complements, tenses, spans in kinds:
        for tense, complement in product(tenses, complements):
            words = (*english_be(subject, tense), portuguese_be(subject, tense, copula))
            for time in times(tense, spans):
                yield Clause(*words, complement, time)


def english_be(subject, tense):
    """(statement, auxiliary, rest)"""
    if tense == "future":
        return "will be", "will", "be"
    be = subject.be if tense == "present" else "were" if subject.be == "are" else "was"
    return be, be, ""


def portuguese_be(subject, tense, copula):
    if tense == "future":
        return f"{PRESENT['ir'][subject.person]} {copula}"
    return (PRESENT if tense == "present" else IMPERFECT)[copula][subject.person]


# --- sentences -------------------------------------------------------------------------------------------------------

FORMS = ("statement", "negation", "question")
MIN_WORDS, MAX_WORDS = 3, 9
SHORT, ONE_IN = 4, 11  # the corpus has every sentence of up to 4 words, and each eleventh of all


def english(subject, form, clause):
    """Negation puts "not" behind the auxiliary, a question puts the auxiliary before the subject."""
    match form:
        case "statement":
            words = [subject.english, clause.statement]
        case "negation":
            words = [subject.english, "cannot" if clause.auxiliary == "can" else f"{clause.auxiliary} not", clause.rest]
        case "question":
            words = [clause.auxiliary, subject.english, clause.rest]
    return sentence([*words, clause.complement[0], clause.time[0]], form)


def portuguese(subject, form, clause):
    """Negation puts "não" before the verb, a question differs from the statement by its mark alone."""
    não = "não" if form == "negation" else ""
    return sentence([subject.portuguese, não, clause.verb, clause.complement[1], clause.time[1]], form)


def sentence(words, form):
    text = " ".join(filter(None, words))
    return text[0].upper() + text[1:] + ("?" if form == "question" else "")


def language():
    """Every sentence of the grammar and its translation: yields (English, Portuguese)."""
    for subject, form in product(SUBJECTS, FORMS):
        for clause in chain(verb_clauses(subject), be_clauses(subject)):
            pair = english(subject, form, clause), portuguese(subject, form, clause)
            if all(MIN_WORDS <= len(text.split()) <= MAX_WORDS for text in pair):
                yield pair


def english_portuguese():
    """The corpus: a list of (English, Portuguese), no sentence twice, always the same and in the same order.

    It is a part of `language()`, so that most of what can be said is new to a model trained on it.
    """
    return [pair for i, pair in enumerate(language()) if _chosen(i, pair[0])]


def _chosen(i, text):
    return text == LECTURE_SENTENCE or len(text.split()) <= SHORT or i % ONE_IN == 0
