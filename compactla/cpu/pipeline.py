"""How kernels become machine code: Numba's way, with less of what takes time and memory.

Numba has LLVM optimize each function on its own, then all together twice, lest code that counts references stay, of
which there is little here: once is enough, and the third of the levels of optimization gains nothing. It keeps LLVM's
modules, for functions that call a compiled one: no function calls kernels but by their addresses.
"""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from compactla import dump

LEVEL = 2  # of optimization, at most


@contextlib.contextmanager
def without_garbage() -> Iterator[None]:
    """Look for no garbage meanwhile: a kernel has a hundred thousand objects while it is made, all of them in use."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Library(JITCodeLibrary):
    """The code of a function: a module that is optimized once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        level = min(LEVEL, int(vars(numba.config)["OPT"]))
        found = self._codegen._module_pass_manager(opt=level)
        passes, *builder = found if isinstance(found, tuple) else (found,)  # a tuple since version 0.62
        passes.run(self._final_module, *builder)


class KernelLibrary(Library):
    """The code of a kernel: a module that is only there as long as it takes to compile it."""

    def _finalize_final_module(self) -> None:
        if dump.is_wanted():
            return super()._finalize_final_module()
        code = self._codegen._tm.emit_object(self._final_module)
        self._set_compiled_object(code)
        self._final_module = self._shared_module = shell(self._final_module)
        super()._finalize_final_module()
        self._compiled_object = code  # which Numba has let go of, and which is yet to be kept on disk


class InnerLibrary(JITCodeLibrary):
    """The code of a function that others call, optimized as a part of theirs: machine code if asked for."""

    emitted = False

    def _set_compiled_object(self, value: bytes) -> None:
        super()._set_compiled_object(value)
        self.emitted = True  # it comes from disk

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        if self.emitted:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self.emitted:
            super()._finalize_final_module()
            return
        self._codegen._add_module(shell(self._final_module, functions=False))  # Numba sets variables
        self._codegen._engine.finalize_object()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        if not self.emitted:
            if not any(x.name == name and not x.is_declaration for x in self._final_module.functions):
                return 0  # as of a wrapper that nobody wanted
            self.emitted = True
            self._optimize_final_module()
            self._finalize_final_module()
        return super().get_pointer_to_function(name)


class Pipeline(Compiler):
    """Numba's compiler, with a `Library` for what it compiles, and an `InnerLibrary` for what that calls."""

    library: type[Library] = Library

    def _compile_bytecode(self) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library(codegen, self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        with without_garbage(), inner_libraries(codegen):
            return super()._compile_bytecode()


@contextlib.contextmanager
def inner_libraries(codegen: Any) -> Iterator[None]:
    """Compile functions into an `InnerLibrary` meanwhile. Numba's lock is held."""
    usual = codegen._library_class
    codegen._library_class = InnerLibrary
    try:
        yield
    finally:
        codegen._library_class = usual


class KernelPipeline(Pipeline):
    """The same with a `KernelLibrary`."""

    library = KernelLibrary


def shell(module: Any, functions: bool = True) -> Any:
    """A module with the names that others see of one, of `functions` too, and without its code."""
    hidden = {llvm.Linkage.internal, llvm.Linkage.private}
    names, variables = (
        [x.name for x in some if not x.is_declaration and x.linkage not in hidden]
        for some in (module.functions if functions else (), module.global_variables)
    )
    lines = [f'define void @"{name}"() {{ ret void }}' for name in names]
    lines += [f'@"{name}" = common global i64 0' for name in variables]
    result = llvm.parse_assembly("\n".join(lines))
    result.triple, result.data_layout, result.name = module.triple, module.data_layout, module.name
    return result
