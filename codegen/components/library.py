"""The definitions of a file as components."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ilang.codegen.call.tracebacks import ends_at_caller
from ilang.codegen.components.component import Component, defined
from ilang.core.diagnostic import ModuleError, shorten, visible
from ilang.core.ir.syntax import Module

if TYPE_CHECKING:
    from ilang.codegen.session.function import Function
    from ilang.codegen.session.model import Model
    from ilang.codegen.session.session import Session
    from ilang.core.build.program import Given


class Library(dict[str, Component]):
    """Components by name, in the order in which the file defines them; sessions of tensor functions and routines."""

    def __init__(self, components: Mapping[str, Component], module: Module) -> None:
        super().__init__(components)
        self._module = module
        self._functions: dict[str, Function] = {}

    def __getattr__(self, name: str) -> Component:
        """A definition as an attribute: ``library.softmax``."""
        known = [] if name.startswith("__") else [*self, *self._heads()]
        if name in known:
            return self[name]
        raise AttributeError(f"the file defines no {name}: it has {', '.join(known) or 'nothing'}")

    def __reduce__(self) -> tuple[object, ...]:
        """The definitions of the file, with nothing compiled."""
        return Library, (dict(self), self._module)

    def __dir__(self) -> list[str]:
        """The definitions, and how to run those with parameters: completions offer no method of a dict."""
        return [*self, *self._heads(), "session", "model"]

    def _heads(self) -> list[str]:
        module: Module | None = vars(self).get("_module")
        if module is None:  # of a copy that is being made
            return []
        heads: list[Any] = [each.head for each in module.functions_and_routines()]
        return [head.name for head in heads if head.span.source is module.source]

    @cached_property
    def model(self) -> Model:
        """The tensor functions and the routines of the file."""
        from ilang.codegen.session.model import Model

        return Model(self._module)

    @ends_at_caller
    def session(
        self,
        name: str,
        shapes: Mapping[str, str] | None = None,
        config: Mapping[str, Given] | None = None,
        **options: Any,
    ) -> Session:
        """A tensor function or a routine with its parameters and its state.

        Args:
            name: what the file calls it.
            shapes: of its inputs: ``batch|input->output``, sizes divided by commas (``"64|784"``).
            config: configuration values by name; those with defaults may be left out.
            options: ``seed=0`` of initial values; ``target="c"``, or "numpy", "cuda", "cuda-emulated"; ``threads=1``,
                how many cores a run uses at most; ``keep=[]``, further tensors of the text to read after a run, which
                forbids fusing them; ``parameters=None``, another session, whose parameters this one shares, or values
                by path; ``ranks=None``, the processes that run it together (``codegen/session/step.py``).

        Raises:
            Error: what is wrong with the text, the shapes or the configuration, and where.
        """
        from ilang.codegen.session.model import options_of
        from ilang.codegen.session.session import Session

        return Session(self.model, options_of(name, shapes, config, options))

    def __repr__(self) -> str:
        module = self._module
        heads: list[Any] = [each.head for each in module.functions_and_routines()]
        named = sorted([*module.definitions, *heads], key=lambda each: each.span.start)
        names = [each.name for each in named if each.span.source is module.source]
        return f"<Library: {shorten(', '.join(names) or 'nothing', 200)}>"

    @ends_at_caller
    def __missing__(self, name: str) -> Any:
        """A tensor function or a routine of this name. Raises: ModuleError E0401 (there is no definition)."""
        names = [each.name for each in self._module.functions_and_routines()]
        if name in names:
            from ilang.codegen.session.function import Function

            return self._functions.setdefault(name, Function(self.model, name))
        from ilang.core.suggestion import did_you_mean

        known = [*self, *names]
        raise ModuleError(
            "E0401",
            f"the file defines no {visible(str(name))}",
            help=did_you_mean(str(name), known, f"it defines {', '.join(known)}"),
        )


def library(module: Module) -> Library:
    """Every definition of a module, exported or not."""
    return Library(defined(module), module)
