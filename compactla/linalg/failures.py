"""Matrices of a stack that have no result: found, named, or filled with NaN; and what NumPy computes in our place."""

import warnings

import numpy as np
from numpy.linalg import LinAlgError

from compactla.cpu.stacks import FAILED, UNSURE

NAMED = 5  # failures in a message


def settle(function, arrays, options, results, status, on_error):
    """Finish the results of a kernel that entered something into `status`: an element for each matrix of the stack."""
    lead = status.shape
    unsure, failed = np.asarray(status == UNSURE), np.asarray(status == FAILED)
    if unsure.any():
        some = [np.broadcast_to(a, lead + a.shape[-2:])[unsure] for a in arrays]
        found, failed[unsure] = attempt(function, some, options)
        for result, x in zip(results, found, strict=True):
            result[unsure] = x
    if failed.any():
        finish(function, arrays, options, results, of_first(failed, arrays[0].shape[:-2]), on_error)


def of_first(failed, own):
    """Flags of the first matrices, a stack of shape `own`, from those of a stack that it was broadcast to."""
    lead = failed.shape
    axes = tuple(i for i in range(len(lead)) if i < len(lead) - len(own) or own[i - len(lead)] == 1)
    return failed.any(axes, keepdims=True).reshape(own)


def through_numpy(function, arrays, options, on_error):
    """What NumPy computes, as a list."""
    found, failed = attempt(function, arrays, options)
    if failed.any():
        finish(function, arrays, options, found, failed, on_error)
    return found


def attempt(function, arrays, options):
    """What NumPy computes, for regular ones in place of what fails, and flags of the first matrices that do."""
    keywords = dict(zip(function.options, options, strict=True))
    a, *others = arrays
    try:
        return listed(function.numpy(a, *others, **keywords)), np.zeros(a.shape[:-2], bool)
    except LinAlgError:
        if a.ndim < 2 or not a.size:
            raise
    failed = np.array([bool(failure(function, matrix, keywords)) for matrix in a.reshape(-1, *a.shape[-2:])])
    failed = failed.reshape(a.shape[:-2])
    good = np.where(failed[..., None, None], function.regular(*a.shape[-2:], **keywords), a).astype(a.dtype)
    return listed(function.numpy(good, *others, **keywords)), failed


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def failure(function, matrix, keywords):
    """What NumPy says of a matrix, alone, that it refuses; "" if it does not."""
    try:
        (function.probe or function.numpy)(matrix, **keywords)
    except LinAlgError as error:
        return str(error)
    return ""


def finish(function, arrays, options, results, failed, on_error):
    """Refuse the first matrices that failed, or fill their results; or warn of them."""
    if on_error == "raise":
        message = function.message
        if not message:
            first = np.broadcast_to(arrays[0], failed.shape + arrays[0].shape[-2:])[failed][0]
            message = failure(function, first, dict(zip(function.options, options, strict=True)))
        elif callable(message):
            message = message(*(result[failed][0] for result in results))
        complain(function, message, failed)
        return
    for output, result in zip(function.outputs, results, strict=True):
        nothing = np.nan if result.dtype.kind in "fc" else 0
        result[np.broadcast_to(failed, result.shape[: result.ndim - len(output.sizes)])] = nothing


def complain(function, message, failed):
    """Raise the error of a function, or warn, since there are matrices that failed."""
    if not issubclass(function.error, Warning):
        raise function.error(message + which(failed))
    text = message.removesuffix(".") + which(failed) if failed.ndim else message
    warnings.warn(text, function.error, stacklevel=6)  # of who called the public function


def which(failed):
    """The indices of some failures, and how many there are; nothing for a single matrix."""
    if not failed.ndim:
        return ""
    indices = [tuple(map(int, index)) for index in np.argwhere(failed)]
    some = ", ".join(str(index[0] if len(index) == 1 else index) for index in indices[:NAMED])
    more = ", ..." if len(indices) > NAMED else ""
    return f": {len(indices)} of {failed.size} matrices, at {some}{more}"
