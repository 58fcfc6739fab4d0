/** A Docker daemon with the test worker's image, and before it the tests' Kubernetes API, whose pods are its containers. */
import { type KubeApi, startKubeApi } from "@rolldeck/sandbox/testing/kube-api";
import { startTestHost, type TestHost } from "./docker-hosts.ts";

export interface KubeHost {
  readonly api: KubeApi;
  readonly docker: TestHost["docker"];
  stop(): Promise<void>;
}

/** @param place as a test host's @throws Error with what is missing where no daemon can be started */
export async function startKubeHost(place: number): Promise<KubeHost> {
  const host = await startTestHost(place, "socket");
  if ("missing" in host) throw new Error(host.missing);
  const api = await startKubeApi(host.daemon.socket);
  const stop = async (): Promise<void> => {
    await api.close();
    await host.stop();
  };
  return { api, docker: host.docker, stop };
}
