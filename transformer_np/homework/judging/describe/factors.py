"""Numbers as expressions in a case's sizes: 0.1667 is 1/(B·T)."""

from itertools import chain, combinations, permutations
from math import e, log, pi, prod

from ..compare import TOLERANCE

_CONSTANTS = {
    "2": 2, "1/2": 0.5, "3": 3, "1/3": 1 / 3, "4": 4, "1/4": 0.25, "6": 6, "1/6": 1 / 6, "8": 8, "1/8": 0.125,
    "√2": 2**0.5, "1/√2": 0.5**0.5, "π": pi, "1/π": 1 / pi, "2π": 2 * pi, "1/(2π)": 0.5 / pi, "√(2/π)": (2 / pi) ** 0.5,
    "√(π/2)": (pi / 2) ** 0.5, "√π": pi**0.5, "1/√π": pi**-0.5, "√(2π)": (2 * pi) ** 0.5, "1/√(2π)": (2 * pi) ** -0.5,
    "e": e, "1/e": 1 / e, "ln 2": log(2), "1/ln 2": 1 / log(2), "ln 10": log(10), "1/ln 10": 1 / log(10),
    "10": 10, "1/10": 0.1, "100": 100, "1/100": 0.01, "1000": 1000, "1/1000": 0.001,
}  # fmt: skip


def names_of(number, sizes, numbers=None):
    """Expressions for a number, simplest first: constants, and products, quotients and roots of the sizes and of the
    single arguments; with a minus if it is negative."""
    found = []
    for name, value in _candidates(sizes, numbers or {}).items():
        if abs(abs(number) - abs(value)) <= 10 * TOLERANCE * abs(value):
            turned = f"−({name})" if " − " in name and name[0] != "√" else f"−{name}"
            found.append(name if number * value > 0 else turned)
    return found


def _candidates(sizes, numbers):
    every = [*sizes.values()]
    sizes = {letter: size for letter, size in sizes.items() if size > 1 and every.count(size) == 1}
    found = dict(_CONSTANTS)
    subsets = chain.from_iterable(combinations(sizes, n) for n in range(1, min(5, len(sizes) + 1)))
    for letters in subsets:
        product, many = "·".join(letters), len(letters) > 1
        value = 1
        for letter in letters:
            value *= sizes[letter]
        bracket = f"({product})" if many else product
        found |= {product: value, f"1/{bracket}": 1 / value, f"√{bracket}": value**0.5, f"1/√{bracket}": value**-0.5}
        if not many:
            found |= {f"{product}²": value**2, f"1/{product}²": value**-2}
            found |= {f"2/{product}": 2 / value, f"{product}/2": value / 2}
        less = f"{product} − 1"
        if value > 2:
            found |= {less: value - 1, f"1/({less})": 1 / (value - 1)}
        found |= {f"{product}/({less})": value / (value - 1), f"({less})/{product}": (value - 1) / value}
        found |= {
            f"√({product}/({less}))": (value / (value - 1)) ** 0.5,
            f"√(({less})/{product})": ((value - 1) / value) ** 0.5,
        }
    for a, b in permutations(sizes, 2):
        found |= {f"{a}/{b}": sizes[a] / sizes[b], f"√({a}/{b})": (sizes[a] / sizes[b]) ** 0.5}
    for name, value in numbers.items():
        found |= _powers(name, value)
        for letters in chain(combinations(sizes, 1), combinations(sizes, 2)):  # such as a mean without the scale
            product, size = "·".join(letters), prod(sizes[letter] for letter in letters)
            if value not in (0, 1, -1):
                bracket = f"({product})" if len(letters) > 1 else product
                found |= {f"1/({product}·{name})": 1 / (size * value), f"{name}/{bracket}": value / size}
        if 0 < value < 1:
            found |= _powers(f"(1 − {name})", 1 - value)
    return found


def _powers(name, value):
    if value in (0, 1, -1):
        return {}
    plain = name[1:-1] if name.startswith("(") else name
    powers = {plain: value, f"1/{name}": 1 / value, f"{name}²": value**2, f"1/{name}²": value**-2}
    return powers | ({f"√{name}": value**0.5, f"1/√{name}": value**-0.5} if value > 0 else {})
