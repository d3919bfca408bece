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


class Pipeline(Compiler):
    """Numba's compiler, with a `Library` for what it compiles."""

    library: type[Library] = Library

    def _compile_bytecode(self) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        with without_garbage():
            return super()._compile_bytecode()


class KernelPipeline(Pipeline):
    """The same with a `KernelLibrary`."""

    library = KernelLibrary


def shell(module: Any) -> Any:
    """A module with the names that others see of one, and without its code."""
    hidden = {llvm.Linkage.internal, llvm.Linkage.private}
    functions, variables = (
        [x.name for x in some if not x.is_declaration and x.linkage not in hidden]
        for some in (module.functions, module.global_variables)
    )
    lines = [f'define void @"{name}"() {{ ret void }}' for name in functions]
    lines += [f'@"{name}" = common global i64 0' for name in variables]
    result = llvm.parse_assembly("\n".join(lines))
    result.triple, result.data_layout, result.name = module.triple, module.data_layout, module.name
    return result
