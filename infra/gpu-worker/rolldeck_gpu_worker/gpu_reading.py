"""What the driver says of a GPU, by its UUID: NVML counts devices its own way, whatever CUDA_VISIBLE_DEVICES hides.

Needs the package `nvidia-ml-py` (module `pynvml`), which need not be there. What can't be told is None: no GPU, no package, no
driver, a part of a partitioned GPU, a number that the device does not have."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GpuReading:
    """Memory in bytes, of all processes; utilisation 0 to 1; power in watts; temperature in °C."""

    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    utilisation: float | None = None
    power_w: float | None = None
    temperature_c: int | None = None


class GpuReader:
    """@param uuid: `GPU-…`; None where there is no GPU"""

    def __init__(self, uuid: str | None, nvml: ModuleType | Any | None = None):
        self._uuid = uuid
        self._nvml = nvml
        self._handle: Any = None
        self._given_up = uuid is None

    def read(self) -> GpuReading:
        if not self._given_up and self._handle is None:
            self._open()
        if self._handle is None:
            return GpuReading()
        nvml, handle = self._nvml, self._handle
        memory = self._told(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
        rates = self._told(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        milliwatts = self._told(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return GpuReading(
            memory_used_bytes=None if memory is None else int(memory.used),
            memory_total_bytes=None if memory is None else int(memory.total),
            utilisation=None if rates is None else rates.gpu / 100,
            power_w=None if milliwatts is None else milliwatts / 1000,
            temperature_c=self._told(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        )

    def _open(self) -> None:
        try:
            self._nvml = self._nvml or importlib.import_module("pynvml")
        except ImportError:
            self._given_up = True
            log.info("nvidia-ml-py is not installed: the GPU's use is not told")
            return
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(self._uuid)
        except self._nvml.NVMLError as error:
            self._given_up = True
            log.warning("NVML does not tell of %s: %s", self._uuid, error)

    def _told(self, ask: Callable[[], Any]) -> Any:
        """One number, or None where the device has none: on parts of partitioned GPUs most are missing."""
        try:
            return ask()
        except self._nvml.NVMLError:
            return None


def gpu_uuid(device: torch.device) -> str | None:
    """As NVML wants it; None on the CPU, and where torch does not tell."""
    if device.type != "cuda":
        return None
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return None if uuid is None else f"GPU-{str(uuid).removeprefix('GPU-')}"


def device_name(device: torch.device) -> str | None:
    """As the driver calls a GPU; None on the CPU."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None
