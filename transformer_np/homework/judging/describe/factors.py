"""Numbers as expressions in a case's sizes: 0.1667 is 1/(B·T)."""

from itertools import chain, combinations, permutations
from math import log, pi, prod

from ..compare import TOLERANCE

_CONSTANTS = {
    "2": 2, "1/2": 0.5, "4": 4, "1/4": 0.25, "√2": 2**0.5, "1/√2": 0.5**0.5, "√(2/π)": (2 / pi) ** 0.5,
    "ln 2": log(2), "1/ln 2": 1 / log(2), "ln 10": log(10), "1/ln 10": 1 / log(10),
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
        product, value = "·".join(letters), prod(sizes[letter] for letter in letters)
        bracket = f"({product})" if len(letters) > 1 else product
        found |= {product: value, f"1/{bracket}": 1 / value, f"√{bracket}": value**0.5, f"1/√{bracket}": value**-0.5}
        less = f"{product} − 1"
        found |= {f"{product}/({less})": value / (value - 1), f"({less})/{product}": (value - 1) / value}
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
