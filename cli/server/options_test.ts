import { assertEquals, assertThrows } from "@std/assert";
import type { ServerOptions } from "../../server/options.ts";
import { UsageError } from "../flags/usage_error.ts";
import { readFlags } from "../flags/read_flags.ts";
import { SERVER_FLAGS } from "./flags.ts";
import { serverOptions } from "./options.ts";
import { words } from "../../tests/support/program/command_line.ts";

/** What every valid line needs; the tests add to it. */
const AGENTS = [
  "--cluster-cert=a.crt",
  "--cluster-key=a.key",
  "--cluster-ca-cert=a-ca.crt",
];
const TCP = [
  "--server-cert=f.crt",
  "--server-key=f.key",
  "--server-ca-cert=f-ca.crt",
];
const UNIX = ["--uds-name=/run/front.sock", "--server-port=0"];

function options(...argv: string[]): ServerOptions {
  const sources = words(argv);
  const reading = readFlags("server", SERVER_FLAGS, sources);
  return serverOptions(reading, "/state", sources, () => "random-id");
}

Deno.test("serverOptions() keeps Konnectivity's defaults but where the help says so", () => {
  assertEquals(options(...AGENTS, ...TCP), {
    serverId: "random-id",
    serverCount: 1,
    membership: { fixed: [], timeoutMs: 10_000 },
    frontend: {
      mode: "auto",
      listen: {
        kind: "tcp",
        address: { hostname: "", port: 8090 },
        keyPair: { certFile: "f.crt", keyFile: "f.key" },
        caFile: "f-ca.crt",
      },
      keepaliveMs: 3_600_000,
      connectEarly200: false,
    },
    agents: {
      address: { hostname: "", port: 8091 },
      keyPair: { certFile: "a.crt", keyFile: "a.key" },
      caFile: "a-ca.crt",
      allowAnonymous: false,
      alpnProtocols: [],
      keepaliveMs: 4_000,
      nodeBinding: "warn",
      duplicateIdentity: "warn",
    },
    limiter: { sourceConnectionsMax: 20_000, sourceUnauthenticatedMax: 2_048 },
    tls: { minVersion: "TLSv1.2" },
    metricsNodesMax: 1_000,
    strategies: ["default"],
    admin: { hostname: "127.0.0.1", port: 8095 },
    health: { hostname: "", port: 8092 },
    dialTimeoutMs: 10_000,
    shutdownTimeoutMs: 25_000,
    messageBytesMax: 16 * 1024 * 1024,
  });
});

Deno.test("limits on connections are those of the process unless they are chosen", () => {
  const { limiter } = options(
    ...[...AGENTS, ...UNIX],
    ...["--max-connections=500", "--max-connections-per-source=400"],
    ...["--max-unauthenticated=50", "--max-unauthenticated-per-source=40"],
  );
  assertEquals(limiter, {
    connectionsMax: 500,
    sourceConnectionsMax: 400,
    unauthenticatedMax: 50,
    sourceUnauthenticatedMax: 40,
  });
});

Deno.test("other servers are named by id and address", () => {
  const read = (...flags: string[]) =>
    options(...AGENTS, ...UNIX, ...flags).membership;
  assertEquals(read(), { fixed: [], timeoutMs: 10_000 });
  assertEquals(
    read(
      "--peers=a=a.example:8091,b=[fd00::7]:1",
      "--advertise-address=a.example:8091",
      "--peer-timeout=3s",
    ),
    {
      fixed: [
        { serverId: "a", address: "a.example:8091" },
        { serverId: "b", address: "[fd00::7]:1" },
      ],
      timeoutMs: 3_000,
      advertiseAddress: "a.example:8091",
    },
  );
  const wrong: readonly (readonly [flag: string, words: string])[] = [
    ["--peers=a.example:8091", "wanted ID=HOST:PORT"],
    ["--peers=a=a.example", "wanted HOST:PORT"],
    ["--peers=a=x:1,a=y:1", '"a" stands there twice'],
    ["--peers=a=x/y:1", "wanted HOST:PORT"],
    ["--advertise-address=a.example", "wanted HOST:PORT"],
    ["--advertise-address=0.0.0.0:8091", "that others can connect to"],
    ["--peer-timeout=1s", "2s"],
  ];
  for (const [flag, words] of wrong) {
    assertThrows(() => read(flag), UsageError, words, flag);
  }
});

Deno.test("the server's command line in Konnectivity's suite is accepted", () => {
  const line =
    "--admin-bind-address=127.0.0.1 --admin-port=20001 --agent-bind-address=127.0.0.1 " +
    "--agent-namespace= --agent-port=20002 --agent-service-account= --authentication-audience= " +
    "--backend-dial-timeout=0s --cluster-ca-cert=ca --cluster-cert=c --cluster-key=k " +
    "--delete-existing-uds-file=true --enable-contention-profiling=false " +
    "--enable-lease-controller=false --enable-profiling=false --frontend-keepalive-time=1h0m0s " +
    "--graceful-shutdown-timeout=0s --health-bind-address= --health-port=20003 " +
    "--keepalive-time=1h0m0s --kube-api-content-type=application/vnd.kubernetes.protobuf " +
    "--kubeconfig= --kubeconfig-burst=0 --kubeconfig-qps=0 --lease-label=k8s-app=konnectivity-server " +
    "--lease-namespace=kube-system --mode=http-connect --proxy-strategies=default --server-bind-address= " +
    "--server-ca-cert= --server-cert= --server-count=3 --server-id=1 --server-key= --server-port=0 " +
    "--tls-min-version= --uds-name=/tmp/f.sock --xfr-channel-size=10";
  const read = options(...line.split(" "));
  assertEquals(read.frontend.listen, {
    kind: "unix",
    path: "/tmp/f.sock",
    deleteExisting: "files",
  });
  assertEquals(read.serverCount, 3);
  assertEquals(read.dialTimeoutMs, 0);
  assertEquals(read.shutdownTimeoutMs, 0);
});

Deno.test("strategies keep their order and lose their doubles", () => {
  const { strategies } = options(
    ...AGENTS,
    ...UNIX,
    "--proxy-strategies=destHost,cidr,uid,defaultRoute,default,cidr",
  );
  assertEquals(strategies, [
    "destHost",
    "cidr",
    "uid",
    "defaultRoute",
    "default",
  ]);
});

Deno.test("agents may be anonymous on loopback, or when the user said so", () => {
  const pair = AGENTS.slice(0, 2);
  const loopback = "--agent-bind-address=127.0.0.1";
  assertEquals(
    options(...pair, ...UNIX, loopback).agents.allowAnonymous,
    true,
  );
  const said = "--allow-anonymous-agents";
  assertEquals(options(...pair, ...UNIX, said).agents.allowAnonymous, true);
  assertEquals(options(...AGENTS, ...UNIX).agents.allowAnonymous, false);
  // Who names a CA wants certificates, on loopback too.
  const both = options(...AGENTS, ...UNIX, loopback);
  assertEquals(both.agents.allowAnonymous, false);
});

Deno.test("without a certificate the server has an identity and a socket of its own", () => {
  const { agents, frontend } = options();
  assertEquals(agents.keyPair, undefined);
  assertEquals(agents.identity, {
    stateDirectory: "/state",
    serverNames: [],
    nodeCertificateLifeMs: 7 * 24 * 3600_000,
  });
  assertEquals(agents.allowAnonymous, false);
  assertEquals(frontend.listen, {
    kind: "unix",
    path: "/state/frontend.sock",
    deleteExisting: true,
  });
  // Loopback is no excuse where agents can have certificates.
  const loopback = options("--agent-bind-address=127.0.0.1");
  assertEquals(loopback.agents.allowAnonymous, false);
});

Deno.test("Konnectivity's way has no identity unless its directory is named", () => {
  assertEquals(options(...AGENTS, ...UNIX).agents.identity, undefined);
  const both = options(...AGENTS, ...UNIX, "--state-dir=/other").agents;
  assertEquals(both.identity?.stateDirectory, "/other");
  assertEquals(both.keyPair?.certFile, "a.crt");
  const foreign = options(...UNIX, "--cluster-ca-cert=ca.crt").agents;
  assertEquals(foreign.identity?.stateDirectory, "/state");
  assertEquals(foreign.caFile, "ca.crt");
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, argv: string[], line: string][] = [
  ["a socket and a port", [...AGENTS, UNIX[0]!, "--server-port=8090"],
    "Cannot use --server-port=8090 together with --uds-name: there is one frontend " +
      "listener; use --server-port=0"],
  ["a socket and a certificate", [...AGENTS, ...UNIX, "--server-ca-cert=x"],
    "Cannot use --server-ca-cert together with --uds-name: there is no TLS on a unix " +
      "socket, its permissions guard it; remove it"],
  ["a port without a CA", [...AGENTS, ...TCP.slice(0, 2)],
    "Cannot listen for frontends on a port without --server-ca-cert: frontends " +
      "authenticate by certificate; give all three, or --uds-name"],
  ["nothing for frontends", AGENTS,
    "Cannot listen for frontends on a port without --server-cert and --server-key: " +
      "frontends authenticate by certificate; give all three, or --uds-name"],
  ["a certificate without its key", [...AGENTS, "--server-cert=x"],
    "Cannot use --server-cert alone: --server-key belongs to it; give both"],
  ["a key without its certificate", [...UNIX, "--cluster-key=x"],
    "Cannot use --cluster-key alone: --cluster-cert belongs to it; give both"],
  ["names for a certificate it does not make", [...AGENTS, ...UNIX, "--server-names=a"],
    "Cannot use --server-names with --cluster-cert alone: it is about the server's own CA; " +
      "add --state-dir to have one beside it"],
  ["dials to servers that no CA of its own knows", [...AGENTS, ...UNIX, "--peer-forwarding"],
    "Cannot use --peer-forwarding with --cluster-cert alone: servers know each other by " +
      "certificates of a CA of their own; add --state-dir or --state, the same for all of them"],
  ["unauthenticated agents from everywhere", [...AGENTS.slice(0, 2), ...UNIX],
    "Cannot start without agent authentication: --cluster-ca-cert is not given and agents " +
      "connect on all interfaces; give it, bind agents to loopback, or accept the risk with " +
      "--allow-anonymous-agents"],
  ["no strategy", [...AGENTS, ...UNIX, "--proxy-strategies=[]"],
    "Cannot use --proxy-strategies: saw an empty list, wanted at least one of default, " +
      "destHost, defaultRoute, cidr, uid"],
  ["a strategy in lower case", [...AGENTS, ...UNIX, "--proxy-strategies=desthost"],
    'Cannot use --proxy-strategies: saw "desthost", wanted names out of default, ' +
      'destHost, defaultRoute, cidr, uid'],
  ["a mode there is not", ["--mode=http"],
    'Cannot use --mode: saw "http", wanted one of auto, grpc, http-connect'],
  ["SSL", [...AGENTS, ...UNIX, "--tls-min-version=VersionSSL30"],
    'Cannot use that TLS version: "VersionSSL30" is none that is offered here; usable are ' +
      "VersionTLS12, VersionTLS13"],
  ["a cipher of the past", [...AGENTS, ...UNIX, "--cipher-suites=TLS_RSA_WITH_RC4_128_SHA"],
    "Cannot limit TLS 1.2 to the cipher suites given: none of them has both forward secrecy and " +
      "AEAD; name some of TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, " +
      "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, " +
      "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, " +
      "or ask for VersionTLS13"],
  ["an empty channel", ["--xfr-channel-size=0"],
    'Cannot use --xfr-channel-size: saw "0", wanted a whole number from 1 to 1000000'],
  ["negative patience", ["--graceful-shutdown-timeout=-1s"],
    'Cannot use --graceful-shutdown-timeout: saw "-1s", wanted a duration such as 24h, 5m, 1.5s ' +
      'or 100ms, from 0s to 596h31m23.647s'],
];

for (const [name, argv, line] of REFUSED) {
  Deno.test(`serverOptions() refuses ${name} in one line`, () => {
    const error = assertThrows(() => options(...argv), UsageError);
    assertEquals(error.message, line);
  });
}
