import { assertEquals, assertThrows } from "@std/assert";
import type { TunnelRoute } from "../../client/tunnel_route.ts";
import { UsageError } from "./usage_error.ts";
import { readFlags } from "./read_flags.ts";
import { ROUTE_FLAGS, routeOf } from "./route_flags.ts";
import { defaultStateDirectory } from "./state_directory.ts";

const EGRESS = `
apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: { uds: { udsName: /run/front.sock } }
`;
const TLS = ["--ca-cert=ca.crt", "--cert=me.crt", "--key=me.key"];

function route(...argv: string[]): TunnelRoute {
  const readFile = (path: string): string => {
    if (path === "egress.yaml") return EGRESS;
    throw new Error("No such file or directory");
  };
  const environment = (name: string) =>
    name === "XDG_STATE_HOME" ? "/nowhere" : undefined;
  const sources = { argv, environment, readFile };
  return routeOf(readFlags("dial", ROUTE_FLAGS, sources), sources);
}

Deno.test("a route leads over a unix socket, however it is spelt", () => {
  for (const server of ["unix:/run/s.sock", "unix:///run/s.sock"]) {
    assertEquals(route(`--server=${server}`), {
      kind: "tunnel",
      protocol: "grpc",
      address: { kind: "unix", path: "/run/s.sock" },
    });
  }
});

Deno.test("a route leads over TCP with certificates", () => {
  const argv = ["--server=[::1]:8090", "--proxy-mode=http-connect", ...TLS];
  const files = { caFile: "ca.crt", certFile: "me.crt", keyFile: "me.key" };
  const tcp = { kind: "tcp", host: "::1", port: 8090 } as const;
  const tunnel = { kind: "tunnel", protocol: "http-connect" } as const;
  assertEquals<TunnelRoute>(route(...argv), {
    ...tunnel,
    address: { ...tcp, tls: files },
  });
  assertEquals<TunnelRoute>(route(...argv, "--tls-server-name=front"), {
    ...tunnel,
    address: { ...tcp, tls: { ...files, serverName: "front" } },
  });
});

Deno.test("a route leads over several servers, of either kind", () => {
  const argv = ["--server=unix:/a.sock,b:8090,c:8090", ...TLS];
  const files = { caFile: "ca.crt", certFile: "me.crt", keyFile: "me.key" };
  const tls = files;
  assertEquals<TunnelRoute>(route(...argv), {
    kind: "tunnel",
    protocol: "grpc",
    address: { kind: "unix", path: "/a.sock" },
    others: [
      { kind: "tcp", host: "b", port: 8090, tls },
      { kind: "tcp", host: "c", port: 8090, tls },
    ],
  });
});

Deno.test("a route is taken from kube-apiserver's file", () => {
  assertEquals(route("--egress-config=egress.yaml"), {
    kind: "tunnel",
    protocol: "http-connect",
    address: { kind: "unix", path: "/run/front.sock" },
  });
  assertEquals(route("--egress-config=egress.yaml", "--network=etcd"), {
    kind: "direct",
  });
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, argv: string[], line: string][] = [
  ["no server", [],
    "Cannot find the tunnel: --server is not given, and no server listens on " +
      defaultStateDirectory("server", (name) => name === "XDG_STATE_HOME" ? "/nowhere" : undefined) +
      "/frontend.sock; wanted unix:/path or host:port of a server's frontend, or tunnel join on this node"],
  ["a port without certificates", ["--server=a:1", "--ca-cert=x"],
    "Cannot connect to a:1 without --ca-cert, --cert and --key: a frontend on a port asks for a " +
      "certificate; give all three"],
  ["a key alone", ["--server=a:1", "--key=x"],
    "Cannot use --key alone: --cert belongs to it; give both"],
  ["certificates for a socket", ["--server=unix:/s", ...TLS],
    "Cannot use --ca-cert, --cert or --key with a unix socket: there is no TLS on it; remove them"],
  ["a socket without a path", ["--server=unix:"],
    'Cannot use --server: saw "unix:", wanted unix:/path'],
  ["certificates for several sockets", ["--server=unix:/s,unix:/t", ...TLS],
    "Cannot use --ca-cert, --cert or --key with a unix socket: there is no TLS on it; remove them"],
  ["a port among sockets without certificates", ["--server=unix:/s,a:1"],
    "Cannot connect to a:1 without --ca-cert, --cert and --key: a frontend on a port asks for a " +
      "certificate; give all three"],
  ["a URL", ["--server=https://a:1"],
    'Cannot use --server: saw "https://a:1", wanted HOST:PORT; leave out what ends in ://, and any path'],
  ["a network without a file", ["--server=unix:/s", "--network=etcd"],
    "Cannot use --network alone: it picks a route out of a file; give --egress-config too"],
  ["a network there is not", ["--network=master"],
    'Cannot use --network: saw "master", wanted one of controlplane, etcd, cluster'],
  ["two routes at once", ["--egress-config=egress.yaml", "--server=unix:/s"],
    "Cannot use --server together with --egress-config: the file says where and how to connect; remove " +
      "one of them"],
  ["a file that is not there", ["--egress-config=gone.yaml"],
    "Cannot use --egress-config gone.yaml: No such file or directory"],
];

for (const [name, argv, line] of REFUSED) {
  Deno.test(`routeOf() refuses ${name} in one line`, () => {
    assertEquals(assertThrows(() => route(...argv), UsageError).message, line);
  });
}
