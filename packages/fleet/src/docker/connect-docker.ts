/**
 * A client of a host's Docker daemon: by socket, by TCP with TLS on both sides, or through `ssh` as Docker's own clients do it. A
 * daemon whose certificate or host key is not the known one is not spoken to. Keys are read when a client is made, and kept there.
 */
import { readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import path from "node:path";
import { type DockerEndpoint, endpointText } from "@rolldeck/contracts/host-endpoint";
import Docker from "dockerode";
import { LaunchFailure } from "../launch-failure.ts";
import { SshAgent } from "./ssh-agent.ts";

/** @throws LaunchFailure when a certificate can't be read */
export function connectDocker(endpoint: DockerEndpoint): Docker {
  switch (endpoint.kind) {
    case "socket":
      return new Docker({ socketPath: endpoint.path });
    case "tcp": {
      const { host, port, certFolder } = endpoint;
      const [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map((name) => certificate(path.join(certFolder, name)));
      // The client takes what stands before a colon for a scheme.
      const address = isIPv6(host) ? `[${host}]` : host;
      return new Docker({ protocol: "https", host: address, port, ca, cert, key });
    }
    case "ssh": {
      // The name stands in a header that nobody reads. The types don't know of agents.
      const through = { protocol: "http", host: "docker", port: 80, agent: new SshAgent(endpoint) } as const;
      return new Docker(through);
    }
  }
}

function certificate(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    const message = `${file} can't be read: ${cause instanceof Error ? cause.message : String(cause)}`;
    const remedy = "put ca.pem, cert.pem and key.pem there, readable by the account of this server";
    throw new LaunchFailure({ code: "unavailable", message, remedy }, { cause, retryable: true });
  }
}

/** What to look at when a daemon does not answer. */
export function connectionRemedy(endpoint: DockerEndpoint): string {
  const at = endpointText(endpoint);
  if (endpoint.kind === "socket")
    return `start Docker there (${at}), and let the account of this server use the socket`;
  if (endpoint.kind === "tcp")
    return `start Docker there with --tlsverify (${at}), and check that ${endpoint.certFolder} holds its ca.pem and a cert.pem that it trusts`;
  return `check that \`ssh${endpoint.port === 22 ? "" : ` -p ${endpoint.port}`} ${endpoint.user === null ? "" : `${endpoint.user}@`}${endpoint.host} docker version\` works without a question (${at})`;
}
