"""OpenCL devices that the tests run on: a driver that is listed may be unable to compile for its processor.

Run as a script, it names them, says what is wrong with the others, and exits with 1 if none works.
"""

import sys

from compactla.gpu.devices import devices
from compactla.gpu.probe import fault


def refused(device):
    """The reason why tests cannot run on a device; "" if they can."""
    return fault(device) or ("" if device.double_fp_config else f"{device.name.strip()} has no double precision")


def working_devices():
    """All OpenCL devices of this machine that work, GPUs first."""
    return [device for device in devices() if not refused(device)]


def unoptimized(*devices):
    """Options for programs that are not optimized. PoCL 5 aborts in some kernels then: only that of PyPI has them."""
    return ["-cl-opt-disable"] if any("PoCL 3.0" in device.platform.version for device in devices) else []


if __name__ == "__main__":
    for why in filter(None, map(refused, devices())):
        print(f"Not used: {why}")
    found = working_devices()
    print("OpenCL devices:", ", ".join(f"{d.name.strip()} ({d.platform.name})" for d in found) or "none")
    sys.exit(not found)
