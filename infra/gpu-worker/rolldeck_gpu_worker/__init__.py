"""The Rolldeck GPU worker: hosts one small policy's sampling and its full fine-tune behind the Tinker REST protocol."""

__version__ = "0.1.0"
