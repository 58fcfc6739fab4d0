"""
The only way out of a sandbox whose network is an allow-list: an HTTP proxy that knows hosts, and nothing else.

Invariants: a host that no pattern names is refused before anything is resolved; what it resolves to must be a public address (unless
the operator allows private ones), and that very address is connected to, so that a name can't point elsewhere a moment later; every
connection ends; nothing of what passes is kept or logged but host, port and verdict.

Environment: EGRESS_HOSTS (patterns by commas: `example.org`, `*.example.org`, `example.org:8443`), EGRESS_ALLOW_PRIVATE=1, EGRESS_PORT.
"""

import asyncio
import ipaddress
import os
import socket
import sys

HEAD_BYTES = 65_536
IDLE_S = 300
CONNECT_S = 15
CHUNK = 65_536
MAX_CONNECTIONS = 512
DEFAULT_PORTS = (80, 443)


class Refused(Exception):
    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def parse_patterns(text):
    """-> list of (host or suffix with a leading dot, port or None)"""
    patterns = []
    for part in filter(None, (item.strip().lower() for item in text.split(","))):
        host, port = split_port(part)
        patterns.append((host[1:] if host.startswith("*.") else host, port))
    return patterns


def split_port(authority, default=None):
    """`host:port`, `[v6]:port` or a host alone"""
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        return host, int(rest[1:]) if rest.startswith(":") and rest[1:].isdigit() else default
    host, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and ":" not in host:
        return host, int(port)
    return authority, default


def is_allowed(host, port, patterns):
    host = host.lower().rstrip(".")
    for name, only in patterns:
        if port != only and not (only is None and port in DEFAULT_PORTS):
            continue
        if host == name or (name.startswith(".") and host.endswith(name) and len(host) > len(name)):
            return True
    return False


async def address_of(host, port, allow_private):
    try:
        found = await asyncio.wait_for(
            asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM), CONNECT_S
        )
    except (OSError, asyncio.TimeoutError) as error:
        raise Refused(502, f"{host} could not be resolved") from error
    for *_, sockaddr in found:
        address = ipaddress.ip_address(sockaddr[0].split("%")[0])
        mapped = getattr(address, "ipv4_mapped", None) or address
        if mapped.is_global or (allow_private and not mapped.is_loopback and not mapped.is_link_local):
            return sockaddr[0]
    raise Refused(403, f"{host} is no public address")


async def read_head(reader):
    try:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), CONNECT_S)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError) as error:
        raise Refused(400, "that is no request") from error
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3:
        raise Refused(400, "that is no request")
    return parts, lines[1:-2]


def forwarded(method, target, version, headers):
    """A plain HTTP request as its server wants it: -> (host, port, head). One request a connection."""
    if not target.lower().startswith("http://"):
        raise Refused(400, "only http:// addresses and CONNECT are passed on")
    authority, slash, path = target[len("http://"):].partition("/")
    host, port = split_port(authority.rpartition("@")[2], 80)
    kept = [line for line in headers if line.split(":")[0].strip().lower() not in HOP_BY_HOP]
    kept = [f"Host: {authority.rpartition('@')[2]}", *kept, "Connection: close"]
    head = "\r\n".join([f"{method} /{path} {version}", *kept, "", ""])
    return host, port, head.encode("latin-1")


# Host is written anew from the address that was checked: what the request says of itself does not count.
HOP_BY_HOP = {"proxy-connection", "proxy-authorization", "connection", "keep-alive", "host", "upgrade"}


class Proxy:
    def __init__(self, patterns, allow_private):
        self.patterns = patterns
        self.allow_private = allow_private
        self.open = 0

    async def serve(self, reader, writer):
        self.open += 1
        try:
            if self.open > MAX_CONNECTIONS:
                raise Refused(503, "too many connections")
            await self.pass_on(reader, writer)
        except Refused as refused:
            body = f"{refused}\n"
            answer = f"HTTP/1.1 {refused.status} Refused\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
            writer.write(answer.encode("latin-1", "replace"))
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            self.open -= 1
            await close(writer)

    async def pass_on(self, reader, writer):
        (method, target, version), headers = await read_head(reader)
        tunnel = method.upper() == "CONNECT"
        if tunnel:
            host, port = split_port(target, 443)
            head = b""
        else:
            host, port, head = forwarded(method, target, version, headers)
        allowed = is_allowed(host, port, self.patterns)
        print(f"{'allowed' if allowed else 'refused'} {host[:255]!r}:{port}", file=sys.stderr, flush=True)
        if not allowed:
            raise Refused(403, f"{host}:{port} is not on the list of allowed hosts")
        address = await address_of(host, port, self.allow_private)
        try:
            upstream = await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_S)
        except (OSError, asyncio.TimeoutError) as error:
            raise Refused(502, f"{host}:{port} does not answer") from error
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                upstream[1].write(head)
            moved = [asyncio.get_running_loop().time()]
            await asyncio.gather(copy(reader, upstream[1], moved), copy(upstream[0], writer, moved))
        finally:
            await close(upstream[1])


async def copy(reader, writer, moved):
    """One way of a connection. It may be silent while the other is not: `moved` is when anything last came, either way."""
    try:
        while chunk := await next_chunk(reader, moved):
            writer.write(chunk)
            await asyncio.wait_for(writer.drain(), IDLE_S)
        if writer.can_write_eof():
            writer.write_eof()
    except (OSError, asyncio.TimeoutError):
        writer.close()


async def next_chunk(reader, moved):
    clock = asyncio.get_running_loop().time
    while True:
        try:
            chunk = await asyncio.wait_for(reader.read(CHUNK), IDLE_S)
            moved[0] = clock()
            return chunk
        except asyncio.TimeoutError:
            if clock() - moved[0] >= IDLE_S:
                raise


async def close(writer):
    try:
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), 5)
    except (OSError, asyncio.TimeoutError):
        pass


async def main():
    patterns = parse_patterns(os.environ.get("EGRESS_HOSTS", ""))
    proxy = Proxy(patterns, os.environ.get("EGRESS_ALLOW_PRIVATE") == "1")
    port = int(os.environ.get("EGRESS_PORT", "3128"))
    server = await asyncio.start_server(proxy.serve, "0.0.0.0", port, limit=HEAD_BYTES)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
