"""Rules of Brazilian Portuguese that the built-in corpus needs: conjugation, agreement, contraction.

A conjugation is a tuple of four forms, for eu, ele, nós and eles; você takes the form of ele.
"""

EU, ELE, NÓS, ELES = range(4)

PRESENT = {
    "estar": ("estou", "está", "estamos", "estão"), "ser": ("sou", "é", "somos", "são"),
    "ir": ("vou", "vai", "vamos", "vão"), "querer": ("quero", "quer", "queremos", "querem"),
    "poder": ("posso", "pode", "podemos", "podem"),
}  # fmt: skip
IMPERFECT = {"estar": ("estava", "estava", "estávamos", "estavam"), "ser": ("era", "era", "éramos", "eram")}
IRREGULAR_PRETERITE = {
    "ir": ("fui", "foi", "fomos", "foram"),
    "fazer": ("fiz", "fez", "fizemos", "fizeram"),
    "trazer": ("trouxe", "trouxe", "trouxemos", "trouxeram"),
}
PRETERITE_ENDINGS = {
    "ar": ("ei", "ou", "amos", "aram"),
    "er": ("i", "eu", "emos", "eram"),
    "ir": ("i", "iu", "imos", "iram"),
}
GERUND_ENDING = {"ar": "ando", "er": "endo", "ir": "indo"}
SOUND_KEPT_BEFORE_E = {"c": "qu", "g": "gu", "ç": "c"}  # tocar, toquei; jogar, joguei; almoçar, almocei


def preterite(infinitive):
    """The simple past: comer -> (comi, comeu, comemos, comeram)."""
    if infinitive in IRREGULAR_PRETERITE:
        return IRREGULAR_PRETERITE[infinitive]
    stem, kind = infinitive[:-2], infinitive[-2:]
    forms = [stem + ending for ending in PRETERITE_ENDINGS[kind]]
    if kind == "ar" and stem[-1] in SOUND_KEPT_BEFORE_E:
        forms[EU] = stem[:-1] + SOUND_KEPT_BEFORE_E[stem[-1]] + "ei"
    return tuple(forms)


def gerund(infinitive):
    """The form after estar: viajar -> viajando, without exceptions."""
    return infinitive[:-2] + GERUND_ENDING[infinitive[-2:]]


def agree(adjective, gender, plural=False):
    """The adjective in a gender ("m" or "f") and number: cansado -> cansadas, feliz -> felizes, jovem -> jovens."""
    if gender == "f" and adjective.endswith("o"):  # other adjectives have one form for both genders
        adjective = adjective[:-1] + "a"
    if not plural:
        return adjective
    if adjective.endswith("m"):
        return adjective[:-1] + "ns"
    return adjective + ("es" if adjective.endswith("z") else "s")


def with_em(noun_phrase):
    """em + noun phrase, contracted with its article: "a praia" -> "na praia", "Lisboa" -> "em Lisboa"."""
    article, _, noun = noun_phrase.partition(" ")
    return f"n{article} {noun}" if article in ("o", "a", "os", "as") else f"em {noun_phrase}"
