"""A stand-in for the module `pynvml` of nvidia-ml-py 13 (a driver is needed for the real one): the same functions, structures'
fields and errors, for one GPU. `parted` is one that is partitioned, of which the driver tells little."""

from __future__ import annotations

from types import SimpleNamespace

NVML_TEMPERATURE_GPU = 0
UUID = "GPU-2d7a1f0e-0000-4000-8000-000000000001"


class NVMLError(Exception):
    pass


class Nvml:
    """@param parted: utilisation, power and temperature are not supported. @param driver: without one nothing opens"""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU = NVML_TEMPERATURE_GPU

    def __init__(self, parted: bool = False, driver: bool = True):
        self._parted, self._driver = parted, driver
        self._open = False
        self.memory_used = 5 << 30

    def nvmlInit(self) -> None:
        if not self._driver:
            raise NVMLError("NVML Shared Library Not Found")
        self._open = True

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object:
        if not self._open:
            raise NVMLError("Uninitialized")
        if uuid != UUID:
            raise NVMLError("Not Found")
        return self

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> SimpleNamespace:
        return SimpleNamespace(total=141 << 30, used=self.memory_used, free=(141 << 30) - self.memory_used)

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> SimpleNamespace:
        self._supported()
        return SimpleNamespace(gpu=37, memory=12)

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        self._supported()
        return 412_500

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        self._supported()
        assert sensor == NVML_TEMPERATURE_GPU
        return 54

    def _supported(self) -> None:
        if self._parted:
            raise NVMLError("Not Supported")
