"""Matrices of a stack that have no result: found, named, or filled with NaN; and NumPy's results in our place."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError

from compactla.backends import device_module
from compactla.checks import on_host
from compactla.cpu.linalg.stacks import FAILED, UNSURE
from compactla.digests import PACKAGE
from compactla.linalg.arguments import common_type

NAMED = 5  # failures in a message


@dataclass(frozen=True)
class Failure:
    """The failure of a function for matrices that have no result.

    Attributes
    ----------
    message : str or function
        Message, or a function that makes it of the results of the first matrix that fails; default: NumPy's for that
        matrix.
    error : type
        Class of the error; a warning leaves results as they are, and so does None, without a word.
    probe : function, optional
        Raises a LinAlgError for a matrix that has no result; of the first matrix and the options. Default: the function
        of NumPy.
    regular : function
        Makes a matrix that has a result, of its rows and columns, and of the options by their names.
    seen : function, optional
        For functions whose failures depend on all inputs: flags of the matrices that have no result, from the results
        of `Stacked.numpy`, which raises nothing then.
    """

    message: str | Callable[..., str] = ""
    error: type[Exception] | None = LinAlgError
    probe: Callable | None = None
    regular: Callable = lambda m, n, **_: np.eye(m, n)
    seen: Callable | None = None

    def named(self, failed: np.ndarray, own: tuple[int, ...]) -> np.ndarray:
        """Flags as messages name them: of the first matrices, a stack of shape `own`, if those alone decide."""
        return of_first(failed, own) if self.seen is None else failed


def settle(function, arrays, options, results, status, on_error):
    """Finish the results of a kernel that entered something into `status`: an element for each matrix of the stack."""
    lead = status.shape
    unsure, failed = np.asarray(status == UNSURE), np.asarray(status == FAILED)
    if unsure.any():
        some = [np.broadcast_to(a, lead + a.shape[-2:])[unsure] for a in arrays]
        found, refused = attempt(function, some, options)
        failed[unsure] = refused is not None and refused
        for result, x in zip(results, found, strict=True):
            result[unsure] = x
    if failed.any():
        finish(function, arrays, options, results, function.failure.named(failed, arrays[0].shape[:-2]), on_error)


def of_first(failed, own):
    """Flags of the first matrices, a stack of shape `own`, from those of a stack that it was broadcast to."""
    lead = failed.shape
    axes = tuple(i for i in range(len(lead)) if i < len(lead) - len(own) or own[i - len(lead)] == 1)
    return failed.any(axes, keepdims=True).reshape(own)


def through_numpy(function, arrays, options, on_error):
    """NumPy's results, as a list."""
    found, failed = attempt(function, arrays, options)
    if failed is not None and failed.any():
        finish(function, arrays, options, found, failed, on_error)
    return found


def attempt(function, arrays, options):
    """NumPy's results, of regular matrices in place of those that fail, and flags of the latter, if there are any."""
    keywords = dict(zip(function.options, options, strict=True)) if options else {}
    a, *others = arrays
    try:
        found = listed(function.numpy(a, *others, **keywords))
        return found, None if function.failure.seen is None else function.failure.seen(*found)
    except LinAlgError:
        if a.ndim < 2 or not a.size or common_type(a.dtype) is None:
            raise
    failed = np.array([bool(reason(function, matrix, keywords)) for matrix in a.reshape(-1, *a.shape[-2:])])
    failed = failed.reshape(a.shape[:-2])
    regular = function.failure.regular(*a.shape[-2:], **keywords)
    good = np.where(failed[..., None, None], regular, a).astype(a.dtype)
    return listed(function.numpy(good, *others, **keywords)), failed


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def reason(function, matrix, keywords):
    """The message with which NumPy refuses a matrix, alone; "" if it does not."""
    try:
        (function.failure.probe or function.numpy)(matrix, **keywords)
    except LinAlgError as error:
        return str(error)
    return ""


def finish(function, arrays, options, results, failed, on_error):
    """Refuse the first matrices that failed, or fill their results; or warn of them."""
    if on_error == "raise" and function.failure.error is None:
        return
    if on_error == "raise":
        message, first = function.failure.message, tuple(map(int, np.argwhere(failed)[0]))
        if not message:
            message = reason(function, on_host(arrays[0][first]), dict(zip(function.options, options, strict=True)))
        elif callable(message):
            message = message(*(on_host(result[first]) for result in results))
        complain(function.failure.error, message, failed)
        return
    for output, result in zip(function.outputs, results, strict=True):
        blank(result, np.broadcast_to(failed, result.shape[: result.ndim - len(output.sizes)]))


def blank(result, flags):
    """Matrices whose flags are set <- NaN, or 0 if they are of integers."""
    if isinstance(result, np.ndarray):
        result[flags] = np.nan if result.dtype.kind in "fc" else 0
    else:
        device_module("linalg.arrays").blank(result, flags)


def complain(error: type[Exception], message: str, failed: np.ndarray) -> None:
    """Raise an error, or warn, since there are matrices that failed."""
    if not issubclass(error, Warning):
        raise error(message + which(failed))
    text = message.removesuffix(".") + which(failed) if failed.ndim else message
    warnings.warn(text, error, stacklevel=level_of_caller())


def level_of_caller():
    """The level in the stack, seen from the calling function, of who called the public function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] == PACKAGE.name:
        level, frame = level + 1, frame.f_back
    return level


def which(failed):
    """The indices of some failures, and how many there are; nothing for a single matrix."""
    if not failed.ndim:
        return ""
    indices = [tuple(map(int, index)) for index in np.argwhere(failed)]
    some = ", ".join(str(index[0] if len(index) == 1 else index) for index in indices[:NAMED])
    more = ", ..." if len(indices) > NAMED else ""
    return f": {len(indices)} of {failed.size} matrices, at {some}{more}"
