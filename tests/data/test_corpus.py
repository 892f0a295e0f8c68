"""The built-in corpus: its Portuguese, its size, and that the English determines the Portuguese."""

import re
from collections import Counter

import pytest

from transformer_np.data import LECTURE_SENTENCE, LECTURE_TRANSLATION, english_portuguese
from transformer_np.data.corpus import language
from transformer_np.data.portuguese import agree, gerund, preterite, with_em


@pytest.fixture(scope="module")
def whole():
    return list(language())


# --- Portuguese rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "infinitive, forms",
    [
        ("viajar", "viajei viajou viajamos viajaram"), ("tocar", "toquei tocou tocamos tocaram"),
        ("jogar", "joguei jogou jogamos jogaram"), ("almoçar", "almocei almoçou almoçamos almoçaram"),
        ("comer", "comi comeu comemos comeram"), ("ler", "li leu lemos leram"),
        ("dormir", "dormi dormiu dormimos dormiram"), ("ir", "fui foi fomos foram"),
        ("fazer", "fiz fez fizemos fizeram"),
    ],
)  # fmt: skip
def test_preterite(infinitive, forms):
    assert preterite(infinitive) == tuple(forms.split())


def test_forms_of_portuguese_words():
    assert [gerund(verb) for verb in ("viajar", "ler", "dormir", "ir")] == ["viajando", "lendo", "dormindo", "indo"]
    genders_and_numbers = [("m", False), ("f", False), ("m", True), ("f", True)]
    for forms in ("cansado cansada cansados cansadas", "doente doente doentes doentes", "feliz feliz felizes felizes",
                  "jovem jovem jovens jovens"):  # fmt: skip
        assert [agree(forms.split()[0], *which) for which in genders_and_numbers] == forms.split()
    phrases = ["o Brasil", "a praia", "os Estados Unidos", "as casas", "Lisboa", "casa"]
    expected = ["no Brasil", "na praia", "nos Estados Unidos", "nas casas", "em Lisboa", "em casa"]
    assert [with_em(phrase) for phrase in phrases] == expected


# --- sentences -------------------------------------------------------------------------------------------------------


TRANSLATIONS = dict(
    [
        ("Lucas will travel in December", "Lucas vai viajar em dezembro"),
        ("I did not play the guitar yesterday", "Eu não toquei violão ontem"),
        ("I played football at the beach", "Eu joguei futebol na praia"),
        ("You are tired", "Você está cansado"),
        ("Ana is tired", "Ana está cansada"),
        ("We were very busy last week", "Nós estávamos muito ocupados na semana passada"),
        ("The students are happy", "Os alunos estão felizes"),
        ("The girls were young", "As meninas eram jovens"),
        ("Ana and Maria are tall", "Ana e Maria são altas"),
        ("Ana and I will be at home", "Ana e eu vamos estar em casa"),
        ("Are the girls sick now?", "As meninas estão doentes agora?"),
        ("My sister wants to go home", "Minha irmã quer ir para casa"),
        ("My parents do not want to eat fish", "Meus pais não querem comer peixe"),
        ("Does he want to buy an old car?", "Ele quer comprar um carro velho?"),
        ("She bought the new bicycle yesterday", "Ela comprou a bicicleta nova ontem"),
        ("They are going to the beach now", "Eles estão indo para a praia agora"),
        ("We will go to school on Monday", "Nós vamos para a escola na segunda-feira"),
        ("Can I sleep at the hospital?", "Eu posso dormir no hospital?"),
        ("The teacher cannot wait for the bus", "O professor não pode esperar o ônibus"),
        ("Did my sisters have lunch at school?", "Minhas irmãs almoçaram na escola?"),
        ("He traveled to the United States last year", "Ele viajou para os Estados Unidos no ano passado"),
        ("Is Maria in Brazil?", "Maria está no Brasil?"),
        ("I am making dinner", "Eu estou fazendo o jantar"),
    ],
)


@pytest.mark.long
def test_translations(whole):
    assert {english: portuguese for english, portuguese in whole if english in TRANSLATIONS} == TRANSLATIONS


def test_the_lecture_sentence_is_there(corpus):
    assert (LECTURE_SENTENCE, LECTURE_TRANSLATION) in corpus
    assert TRANSLATIONS[LECTURE_SENTENCE] == LECTURE_TRANSLATION


@pytest.mark.long
def test_the_corpus_is_part_of_the_language_and_always_the_same(corpus, whole):
    assert list(corpus) == english_portuguese() and len(corpus) == 11_681
    assert set(corpus) <= set(whole) and len(whole) > 5 * len(corpus)
    assert len({english for english, _ in whole}) == len(whole)  # English determines Portuguese


@pytest.mark.long
def test_form_of_the_sentences(whole):
    for pair in whole:
        for text in pair:
            assert 3 <= len(text.split()) <= 9, text
            assert re.fullmatch(r"[A-ZÉ][^.,?]*\??", text) and "  " not in text, text
        assert pair[0].endswith("?") == pair[1].endswith("?")


@pytest.mark.long
def test_times_agree_with_the_tense(whole):
    later = re.compile(r"\b(will|wants?|can|cannot)\b", re.I)
    for english, _ in whole:
        if re.search(r"\b(yesterday|last)\b", english):
            assert not later.search(english), english
        elif re.search(r"\b(tomorrow|next)\b", english):
            assert later.search(english), english
        elif re.search(r"\bnow\b", english):
            assert re.search(r"\b(am|is|are)\b", english, re.I), english


@pytest.mark.long
def test_portuguese_subject_and_adjective_agree(whole):
    endings = {"Ana": "a", "Ele": "o", "Eles": "os", "Nós": "os", "As": "as", "Minha": "a", "Minhas": "as", "Os": "os"}
    seen = Counter()
    for english, portuguese in whole:
        subject = portuguese.split()[0]
        found = re.search(r"\b(?:cansad|ocupad|alt|famos)(\w+)", portuguese)
        if found and subject in endings and " and " not in english:
            assert found[1] == endings[subject], portuguese
            seen[subject] += 1
    assert min(seen[subject] for subject in endings) > 100


def test_every_word_comes_often_enough_to_be_learned(corpus):
    for side, size in ((0, 139), (1, 203)):
        counts = Counter(word for pair in corpus for word in pair[side].rstrip("?").split())
        assert len(counts) == size and min(counts.values()) >= 8


def test_the_two_sides_are_not_word_for_word(corpus):
    different = sum(len(english.split()) != len(portuguese.split()) for english, portuguese in corpus)
    questions = sum(english.endswith("?") for english, _ in corpus)
    assert different / len(corpus) > 0.4 and 0.3 < questions / len(corpus) < 0.4
