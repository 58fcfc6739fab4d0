"""Memory facts of the device and the process, and what counts as running out of it."""

from __future__ import annotations

import gc
import resource

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA raises its own type; the CPU allocator raises a plain RuntimeError."""
    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def release_cached(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def wait_for(device: torch.device) -> None:
    """Until the device has done what it was given; clocks are read after it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_bytes(device: torch.device) -> int:
    """Peak allocated on the device; on the CPU the process's peak resident set."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def device_memory_bytes(device: torch.device) -> int | None:
    """Total memory of the device; None where it cannot be told."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemTotal:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None
