# GPU worker. BASE_IMAGE is any Linux image for x86-64 with Python 3.11, nothing else of it is used: torch brings its own CUDA.
# VARIANT is cpu or cuda. Every package comes from infra/gpu-worker/wheels/<variant>, which `infra/gpu-worker/fetch-wheels.sh
# <variant>` fills before, and has the hash that infra/gpu-worker/locks/<variant>.txt says: the build reaches no network.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE} AS packages
ARG VARIANT=cpu
COPY infra/gpu-worker/locks/${VARIANT}.txt /lock.txt
COPY infra/gpu-worker/wheels/${VARIANT} /wheels
# pip from its own wheel: the base needs none. Hashes are checked before anything of a package runs, pip's by pip itself.
RUN sha256sum /wheels/pip-*.whl | cut -d ' ' -f 1 | xargs -I {} grep -q sha256:{} /lock.txt \
 && PYTHONPATH=$(echo /wheels/pip-*.whl) python3 -m pip install --no-index --find-links /wheels --no-deps \
    --require-hashes --no-cache-dir --root-user-action ignore --target /packages -r /lock.txt \
 && rm -rf /packages/pip /packages/pip-* /packages/bin

FROM ${BASE_IMAGE}
RUN useradd --uid 10001 --user-group --create-home --home-dir /data --shell /usr/sbin/nologin rolldeck
COPY --from=packages /packages /packages
WORKDIR /gpu-worker
COPY infra/gpu-worker/rolldeck_gpu_worker rolldeck_gpu_worker
COPY infra/models /models

# By number: Kubernetes has to see that it is not root.
USER 10001:10001
ENV HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/packages
VOLUME /data
EXPOSE 8600
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
  CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8600/api/v1/healthz', timeout=4)"]
ENTRYPOINT ["python3", "-m", "rolldeck_gpu_worker"]
CMD ["--host", "0.0.0.0", "--port", "8600", "--data-dir", "/data", "--model-roots", "/models"]
