"""Parameter and Module: the parts of a model, by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .support.checks import as_array, check_flag, check_kind, floating_dtype, listed, short
from .support.outline import Outline
from .support.replacing import Output, Place, Tap
from .support.seals import seal


class Parameter:
    """A learned array, `.data`, and its accumulated gradient, `.grad`, of the same shape and dtype.

    Assigning to either copies the values into the existing array (the shape must agree). So an optimizer that holds
    all parameters in one buffer sees the new values.
    """

    frozen = False

    def __init__(self, data):
        data = np.array(as_array(data, "the data of a Parameter", "floats"))
        if data.dtype.kind != "f":
            raise TypeError(f"a Parameter holds floats, got {data.dtype}")
        self.bind(data, np.zeros(data.shape, data.dtype))

    def freeze(self):
        """Stop learning: gradients that are added from now on are dropped and take no memory."""
        self.frozen, self._grad = True, _NoGradient()

    def unfreeze(self):
        """Learn again, from a gradient of 0."""
        if self.frozen:
            self.frozen, self._grad = False, np.zeros(self._data.shape, self._data.dtype)

    def bind(self, data, grad):
        """Use these two arrays from now on, without a copy. A frozen parameter takes no gradient."""
        self._data = data
        if not self.frozen:
            self._grad = grad

    @property
    def data(self) -> np.ndarray:
        return self._data

    @data.setter
    def data(self, values):
        self._assign(self._data, values)

    @property
    def grad(self) -> np.ndarray:
        return self._grad

    @grad.setter
    def grad(self, values):
        self._assign(self._grad, 0 if values is None else values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> np.dtype:
        return self._data.dtype

    def _assign(self, array, values):
        if values is array:  # the last step of `p.grad += …`
            return
        given, values = values, as_array(values, "the values of a parameter", "floats")
        if values.dtype.kind not in "biuf":
            raise TypeError(f"a parameter holds floats, got {short(given)}; for a layer without bias pass bias=False")
        if values.ndim and np.shape(values) != array.shape:
            raise ValueError(f"a parameter of shape {array.shape} cannot take values of shape {np.shape(values)}")
        array[...] = values

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self._data, dtype=dtype, copy=copy)

    def __repr__(self):
        return f"Parameter{self.shape} {self.dtype}"


class _NoGradient:
    """The gradient of a frozen parameter: what is added to it, whole or in part, is dropped."""

    def __iadd__(self, _):
        return self

    def __getitem__(self, _):
        return self

    def __setitem__(self, _, values):
        pass


def as_parameters(parameters):
    """A list of Parameter, from any iterable of them; TypeError for anything else."""
    if isinstance(parameters, str | Module) or not isinstance(parameters, Iterable):
        raise TypeError(f"parameters must be a list of Parameter, such as model.parameters(); got {short(parameters)}")
    parameters = list(parameters)
    for i, parameter in enumerate(parameters):
        check_kind(f"parameters[{i}]", parameter, Parameter)
    return parameters


class Module:
    """A part of a network: parameters and other modules as attributes, a `forward` and a `backward`.

    `backward(dout)` takes the gradient of the loss with respect to the output of the last forward. It adds to the
    gradients of the parameters and returns the gradient with respect to the inputs.
    """

    training = True
    keeping = True
    always_kept = ()  # names of the values that are kept even in eval()
    taps: tuple[str, ...] = ()  # names of the kept values that `replacing` can change, besides the output
    places: tuple[tuple[str, type[Place]], ...] = ()  # (name, class) of other values that it can change
    _kept: Any = MappingProxyType({})
    _changes: Any = MappingProxyType({})  # {name: Tap} while values are replaced
    _seals: Any = None  # Seals after train(check=True)

    if TYPE_CHECKING:  # the attributes that a subclass makes by name

        def __getattr__(self, name: str) -> Any: ...

    def forward(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, dout: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        self.__dict__["_kept"] = {}  # not by __setattr__: this runs in every layer at every step
        try:
            return self.forward(*inputs, **options)
        except BaseException:
            self.forget()
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        """`layer.w = array` sets the values of the parameter w; it stays the same Parameter."""
        current = self.__dict__.get(name)
        if isinstance(current, Parameter) and not isinstance(value, Parameter):
            current.data = value
        else:
            object.__setattr__(self, name, value)

    # --- the values of the last forward --------------------------------------------------------------------------

    def forget(self) -> None:
        """Drop the values of the last forward, here and in every module inside. A backward pass then says that there is
        no forward. A call that raises does this, so that no backward pass can mix two forwards."""
        for _, module in self.named_modules():
            module.__dict__["_kept"] = {}

    def keep(self, **arrays):
        """Keep arrays of this forward by name, for the backward pass and for inspection  ->  the arrays, one or a
        tuple. Those that `replacing` changes are new."""
        if changes := self._changes:
            arrays = {name: changes[name].new(a) if name in changes else a for name, a in arrays.items()}
        if self.keeping:
            self.__dict__.setdefault("_kept", {}).update(arrays)
            if self._seals is not None:
                self._seals.add(self, arrays)
        else:
            for name in self.always_kept:
                if name in arrays:
                    self.__dict__.setdefault("_kept", {})[name] = arrays[name]
        return tuple(arrays.values()) if len(arrays) > 1 else next(iter(arrays.values()), None)

    def show(self, **arrays):
        """`keep` for values that only a reader needs  ->  the arrays, as `keep`

        They are kept with eval(keep=True) alone, so that training pays nothing. A `partial` instead of an array is
        computed when `intermediates` reads it.
        """
        if self._changes or (self.keeping and not self.training):
            return self.keep(**arrays)
        return tuple(arrays.values()) if len(arrays) > 1 else next(iter(arrays.values()))

    def gradient(self, **arrays):
        """The gradients of `taps`, by name  ->  the same, one or a tuple; of an array that `replacing` has changed, the
        gradient of the old one."""
        if changes := self._changes:
            arrays = {name: changes[name].gradient(a) if name in changes else a for name, a in arrays.items()}
        return tuple(arrays.values()) if len(arrays) > 1 else next(iter(arrays.values()))

    def _shows(self, name):
        """Whether this value is asked for: no shortcut may leave it out."""
        return name in self._changes or (self.keeping and not self.training)

    def kept(self, *names):
        """The arrays with these names that the last forward kept, in this order."""
        if any(name not in self._kept for name in names):
            own = type(self).__name__
            raise RuntimeError(f"{own}.backward needs a forward in train() mode, or in eval(keep=True), before it")
        if self._seals is not None:
            self._seals.check(self, names)
        return tuple(self._kept[name] for name in names) if len(names) > 1 else self._kept[names[0]]

    def intermediates(self) -> dict[str, np.ndarray]:
        """Every named value of the last forward, {dotted name: array}: q, k, v, weights, hidden, x_hat, …

        eval() keeps the attention weights only; train() also keeps what the backward pass needs; eval(keep=True) keeps
        everything. The weights of long sequences, the scores before the softmax, what each head has written and the
        residual path are included only with eval(keep=True); otherwise read the layer's `weights`.
        """
        found = {}
        for path, module in self.named_modules():
            for name, array in module._kept.items():
                array = array() if isinstance(array, partial) else array
                if isinstance(array, np.ndarray):
                    found[f"{path}.{name}" if path else name] = array
        return found

    def replaceable(self) -> dict[str, type[Place]]:
        """The values inside this module, besides its output, that `replacing` can change: {name: place}."""
        return dict.fromkeys(self.taps, Tap) | dict(self.places)

    @contextmanager
    def replacing(self, name: str, function: Callable, backward: Callable | None = None) -> Iterator[Self]:
        """`with model.replacing(name, function):` changes a value inside the model while it runs.

            with model.replacing("decoder.0.cross_attention.weights", function):
                logits = model(src, tgt_in)
                model.backward(dlogits)

        name: of a value, as in `intermediates()`, or of a module, for its output: "encoder.0"
        function: takes the array and returns another one of the same shape, which the rest of the forward pass uses
        backward: takes the gradient of the new array, and the old array, and returns the gradient of the old array. By
            default the new array is a constant: no gradient reaches the old one, whatever the function does. For a
            function that sets entries to 0, pass `lambda dout, old: function(dout)`

        Run the backward pass inside the block as well. Several values may be replaced at once. Inside the block, a
        layer computes whole attention weights instead of tiles. Other models compute what they always do, in other
        threads too.

        Raises ValueError for an unknown name, with suggestions, and for a function that returns another shape;
        RuntimeError for a value that this forward pass does not compute, such as the memory of self-attention.
        """
        places = self._values_by_name()
        if name not in places:
            hint = [other for other in places if other.endswith(f".{name}")][:3] or get_close_matches(name, places, 3)
            hint = f"; did you mean {' or '.join(map(repr, hint))}?" if hint else ""
            raise ValueError(f"this {type(self).__name__} has no value {name!r} that can be replaced{hint}")
        for value, argument in ((function, "function"), (backward, "backward")):
            if not callable(value) and not (value is None and argument == "backward"):
                raise TypeError(f"{argument} must be a function, got {type(value).__name__}")
        module, place = places[name]
        with place(module, name, function, backward).active():
            yield self

    def _values_by_name(self):
        """{name: (module, place)} of every value that can be replaced."""
        found = {}
        for path, module in self.named_modules():
            for key, place in module.replaceable().items():
                found[f"{path}.{key}" if path else key] = module, place
            if path:
                found[path] = module, Output
        return found

    # --- parameters and modules by name --------------------------------------------------------------------------

    def children(self) -> Iterator[tuple[str, "Module"]]:
        """(name, module) for the modules directly inside; modules in a list are numbered."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            elif isinstance(value, list):
                yield from ((f"{name}.{i}", item) for i, item in enumerate(value) if isinstance(item, Module))

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """(dotted name, module) for this module, whose name is "", and all modules inside it."""
        yield prefix, self
        for name, child in self.children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """(dotted name, parameter). A tied parameter with several names appears once, under the first."""
        seen = set()
        for path, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Parameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def parameters(self) -> list[Parameter]:
        return [parameter for _, parameter in self.named_parameters()]

    def num_parameters(self) -> int:
        return sum(parameter.data.size for parameter in self.parameters())

    def generators(self) -> list[np.random.Generator]:
        """The distinct random generators, the `rng` of the modules, which dropout draws from."""
        found = {id(module.rng): module.rng for _, module in self.named_modules() if hasattr(module, "rng")}
        for rng in found.values():
            check_kind("self.rng of a layer", rng, np.random.Generator)
        return list(found.values())

    def zero_grad(self) -> None:
        for parameter in self.parameters():
            parameter.grad[...] = 0

    def freeze(self) -> Self:
        """Freeze every parameter: an optimizer gets those of `learned()`."""
        for parameter in self.parameters():
            parameter.freeze()
        return self

    def unfreeze(self) -> Self:
        for parameter in self.parameters():
            parameter.unfreeze()
        return self

    def learned(self) -> dict[str, Parameter]:
        """{dotted name: parameter} of those that are not frozen."""
        return {name: parameter for name, parameter in self.named_parameters() if not parameter.frozen}

    def outline(self) -> Outline:
        """The tree of modules with their parameters, as `print(model)` shows it."""
        return self._outline("", set())

    def _outline(self, name, seen):
        named, size = {}, 0  # {shape: names}
        for own, value in vars(self).items():
            if isinstance(value, Parameter):
                named.setdefault(f"{value.shape}{' tied' if id(value) in seen else ''}", []).append(own)
                size += 0 if id(value) in seen else value.data.size
                seen.add(id(value))
        parameters = tuple(f"{' '.join(names)} {shape}" for shape, names in named.items())
        inside = tuple(child._outline(path, seen) for path, child in self.children())
        size += sum(part.size for part in inside)
        return Outline(name, type(self).__name__, parameters, size, inside)

    def __repr__(self) -> str:
        return str(self.outline())

    def _repr_html_(self) -> str:
        return self.outline().html()

    # --- modes ---------------------------------------------------------------------------------------------------

    def train(self, *, check: bool = False) -> Self:
        """Dropout on; every forward keeps the arrays for the backward pass.

        check: whether the backward pass first looks whether these arrays and the parameters are still what they were.
            `x += layer(x)` changes the x that the layer has kept, and the gradient is wrong without a word; with
            `check` it is a RuntimeError that names the layer and the array. Costs time: for looking for a mistake
        """
        check_flag("check", check)
        self._set_mode(training=True, keeping=True)
        if check:
            seal(self)
        return self

    def eval(self, keep: bool = False) -> Self:
        """Dropout off; a forward keeps nothing for the backward pass, unless `keep`."""
        check_flag("keep", keep)
        return self._set_mode(training=False, keeping=keep)

    def _set_mode(self, training, keeping):
        for _, module in self.named_modules():
            module.training, module.keeping = training, keeping
            vars(module).pop("_seals", None)
        return self

    @contextmanager
    def evaluating(self) -> Iterator[Self]:
        """`with model.evaluating():` runs in eval() mode; afterwards every module has its earlier mode again."""
        modes = [(module, module.training, module.keeping, module._seals) for _, module in self.named_modules()]
        if self.training:
            self.eval()
        try:
            yield self
        finally:
            for module, training, keeping, seals in modes:
                module.training, module.keeping = training, keeping
                if seals is not None:
                    module._seals = seals

    # --- state ---------------------------------------------------------------------------------------------------

    def astype(self, dtype) -> Self:
        """Convert every parameter and every constant table, in place; gradients are cleared. Returns the module.

        An optimizer that was created before raises an error at its next step: create a new one.
        """
        dtype = np.dtype(floating_dtype("dtype", dtype))
        for parameter in self.parameters():
            parameter.bind(parameter.data.astype(dtype), np.zeros(parameter.shape, dtype))
        for _, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                    setattr(module, name, value.astype(dtype))
            module._kept = {}
            if hasattr(module, "config"):  # a model that is built from this config gets the same dtype
                module.config = replace(module.config, dtype=dtype.name)
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """{dotted name: a copy of the parameter's values}"""
        return {name: parameter.data.copy() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Copy values into the parameters by name. All values are checked before the first one is copied.

        Returns (missing, unexpected) names; with `strict` such names raise ValueError. Frozen parameters may be
        missing: they stay as they are. A wrong shape, NaN or infinity raise ValueError, values that are not
        floats TypeError.
        """
        check_kind("state", state, Mapping)
        own = dict(self.named_parameters())
        missing, unexpected = sorted(self.learned().keys() - state.keys()), sorted(state.keys() - own.keys())
        if strict and (missing or unexpected):
            differing = f"missing {listed(missing)}, not expected {listed(unexpected)}"
            raise ValueError(f"the state does not belong to this {type(self).__name__}: {differing}")
        for name in own.keys() & state.keys():
            values = as_array(state[name], name, "floats")
            if values.dtype.kind != "f":
                raise TypeError(f"{name} must be floats, got {values.dtype}")
            if values.shape != own[name].shape:
                raise ValueError(f"{name} must have shape {own[name].shape}, got {values.shape}")
            if not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite, but it holds NaN or infinity")
        for name in own.keys() & state.keys():
            own[name].data = state[name]
        return missing, unexpected


def forward_part(method: Callable) -> Callable:
    """Decorate a method that runs a part of the forward, such as `encode`: if it raises, the model forgets the last
    forward, as after a call that raises."""

    @wraps(method)
    def run(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.forget()
            raise

    return run
