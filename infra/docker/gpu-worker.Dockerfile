# GPU worker. BASE_IMAGE is any image with Python 3.10 to 3.13 and venv; a torch that it has already is used as it is.
# TORCH_INDEX may name the CPU or a CUDA wheel index.
ARG BASE_IMAGE=python:3.12-slim-bookworm
FROM ${BASE_IMAGE}

ARG TORCH_INDEX=
WORKDIR /gpu-worker
COPY infra/gpu-worker/requirements.txt ./
RUN python3 -m venv --system-site-packages /venv \
 && if [ -n "$TORCH_INDEX" ]; then /venv/bin/pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch' requirements.txt)"; fi \
 && /venv/bin/pip install --no-cache-dir -r requirements.txt \
 && useradd --system --create-home --home-dir /data --shell /usr/sbin/nologin rolldeck
COPY infra/gpu-worker ./
COPY infra/models /models

USER rolldeck
ENV HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8600
ENTRYPOINT ["/venv/bin/python", "-m", "rolldeck_gpu_worker"]
CMD ["--host", "0.0.0.0", "--port", "8600", "--data-dir", "/data", "--model-roots", "/models"]
