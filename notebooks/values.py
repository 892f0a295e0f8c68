"""Values in the sentences of a notebook: a number that a sentence names is computed where the sentence is.

    The loss falls to {{ losses[-1]:.2f }} nats.           an expression, formatted as in an f-string
    LoRA is {{ better if min(lora) > max(full) }}.         words, and the comparison that has to be true for them

`notebooks/build.py` evaluates the expressions in the notebook's kernel, after the cells above the sentence, and fails
where a comparison is false. It keeps the results beside the text, in NN_values.json, because readers get plain text.
"""

import ast
import json

from transformer_np.notebooks.texts import FIELD


def fields(source):
    """The fields of a Markdown cell, each on one line."""
    return [" ".join(field.split()) for field in FIELD.findall(source)]


def is_claim(field):
    """Whether a field is words with a comparison."""
    return not _is_python(f'f"""{{{field}}}"""') and " if " in field


def names_of(field):
    """The names that the expression of a field reads."""
    code = field.partition(" if ")[2] if is_claim(field) else f'f"""{{{field}}}"""'
    return {node.id for node in ast.walk(ast.parse(code, mode="eval")) if isinstance(node, ast.Name)}


def _is_python(code):
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True


def value(field, names):
    """What a sentence says in place of a field. Raises AssertionError where its comparison is false."""
    if not is_claim(field):
        return eval(f'f"""{{{field}}}"""', names)
    words, _, condition = field.partition(" if ")
    if not eval(condition, names):
        raise AssertionError(f'the text says "{words}", but this is false: {condition}')
    return words


def tell(wanted, names):
    """Print the values of these fields as JSON, for `notebooks/build.py`."""
    print(json.dumps({field: value(field, names) for field in wanted}))
