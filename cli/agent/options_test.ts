import { assertEquals, assertThrows } from "@std/assert";
import type { AgentOptions } from "../../agent/options.ts";
import { UsageError } from "../flags/usage_error.ts";
import { AGENT_FLAGS } from "./flags.ts";
import { agentOptions } from "./options.ts";
import { readFlags } from "../flags/read_flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

const CA = "--ca-cert=ca.crt";
const TOKEN = `tnl1.${"A".repeat(43)}.abcdefg234.${"s".repeat(22)}`;

function options(...argv: string[]): AgentOptions {
  const reading = readFlags("agent", AGENT_FLAGS, words(argv));
  return agentOptions(reading, () => "random-id", "/no/state");
}

/** How servers are counted. */
function leases(...argv: string[]): AgentOptions["leases"] {
  return options(CA, ...argv).leases;
}

Deno.test("agentOptions() keeps Konnectivity's defaults but where the help says so", () => {
  assertEquals(options(CA), {
    agentId: "random-id",
    identifiers: {
      host: [],
      ipv4: [],
      ipv6: [],
      cidr: [],
      uid: [],
      defaultRoute: false,
    },
    server: {
      addresses: [{ host: "127.0.0.1", port: 8091 }],
      caFile: "ca.crt",
      alpnProtocols: [],
      links: 2,
      keepaliveMs: 4_000,
    },
    sync: { intervalCapMs: 10_000, forever: false },
    dials: { timeoutMs: 5000, allowUnix: [], hasBenchTarget: true },
    drainTimeoutMs: 30_000,
    health: { hostname: "", port: 8093 },
    admin: { hostname: "127.0.0.1", port: 8094 },
    messageBytesMax: 16 * 1024 * 1024,
  });
});

Deno.test("the agent's command line in Konnectivity's suite is accepted", () => {
  const line =
    "--admin-bind-address=127.0.0.1 --admin-server-port=20001 --agent-cert=a.crt --agent-id=test-id " +
    "--agent-identifiers= --agent-key=a.key --alpn-proto=[] --ca-cert=ca.crt " +
    "--count-server-leases=false --enable-contention-profiling=false --enable-profiling=false " +
    "--health-server-host=127.0.0.1 --health-server-port=20002 --keepalive-time=1h0m0s " +
    "--kube-api-content-type=application/vnd.kubernetes.protobuf --kubeconfig= " +
    "--lease-label=k8s-app=konnectivity-server --lease-namespace=kube-system --probe-interval=100ms " +
    "--proxy-server-host=localhost --proxy-server-port=20003 --server-count-source=default " +
    "--service-account-token-path= --sync-forever=false --sync-interval=100ms --sync-interval-cap=1s " +
    "--warn-on-channel-limit=false --xfr-channel-size=150";
  const read = options(...line.split(" "));
  assertEquals(read.agentId, "test-id");
  assertEquals(read.server, {
    addresses: [{ host: "localhost", port: 20_003 }],
    caFile: "ca.crt",
    keyPair: { certFile: "a.crt", keyFile: "a.key" },
    alpnProtocols: [],
    links: 2,
    keepaliveMs: 3_600_000,
  });
  assertEquals(read.sync, {
    intervalMs: 100,
    intervalCapMs: 1000,
    forever: false,
  });
});

Deno.test("identifiers are read under both names of their flag", () => {
  const query =
    "host=Node7&host=b&ipv4=10.0.0.7&cidr=10.1.0.0/16&default-route=true";
  const wanted = {
    host: ["node7", "b"],
    ipv4: ["10.0.0.7"],
    ipv6: [],
    cidr: ["10.1.0.0/16"],
    uid: [],
    defaultRoute: true,
  };
  for (
    const name of ["identifiers", "agent-identifiers", "agent_identifiers"]
  ) {
    assertEquals(options(CA, `--${name}=${query}`).identifiers, wanted);
  }
});

Deno.test("an identifier that is no address is left out by Konnectivity's flag, and refused by ours", () => {
  const query = "ipv4=${HOST_IP}&ipv4=::1&cidr=10.0.0.0/33&host=a";
  const { identifiers } = options(CA, `--agent-identifiers=${query}`);
  assertEquals(identifiers?.host, ["a"]);
  assertEquals([identifiers?.ipv4, identifiers?.cidr], [[], []]);
  const { notices } = readFlags(
    "agent",
    AGENT_FLAGS,
    words([`--agent-identifiers=${query}`]),
  );
  assertEquals(notices, [
    "--agent-identifiers: ipv4=${HOST_IP}, ipv4=::1, cidr=10.0.0.0/33 is left " +
    "out: it is no such address",
  ]);
  assertThrows(() => options(CA, `--identifiers=${query}`), UsageError);
});

Deno.test("a token asks for an identity, and files for none", () => {
  const { identity, identifiers, agentId, server } = options(
    `--join=${TOKEN}`,
    "--node=edge-7",
    "--server=a:1,[::1]:2",
    "--state-dir=/no/other",
  );
  assertEquals(identity, {
    stateDirectory: "/no/other",
    token: TOKEN,
    node: "edge-7",
  });
  assertEquals([identifiers, agentId], [undefined, ""]);
  assertEquals(server.addresses, [
    { host: "a", port: 1 },
    { host: "::1", port: 2 },
  ]);
  assertEquals(options(CA, "--server=a:1").server.addresses, [
    { host: "a", port: 1 },
  ]);
  assertEquals(options(CA).identity, undefined);
});

Deno.test("the first wait may be as long as the longest", () => {
  assertEquals(options(CA, "--sync-interval=10s").sync.intervalMs, 10_000);
});

Deno.test("--allow-unix may be given many times", () => {
  const { dials } = options(CA, "--allow-unix=/a.sock", "--allow-unix", "/b");
  assertEquals(dials.allowUnix, ["/a.sock", "/b"]);
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, argv: string[], line: string][] = [
  ["no CA", [],
    "Cannot verify the server: --ca-cert is not given, and there is no " +
      "identity in /no/state; join with --join and a token of `tunnel token create`, or give " +
      "the CA file that the server's certificate was signed with"],
  ["a certificate without a CA", ["--agent-cert=a", "--agent-key=b"],
    "Cannot verify the server: --ca-cert is not given; give the CA file " +
      "that the server's certificate was signed with"],
  ["a token beside a CA", [CA, "--join=tnl1.x"],
    "Cannot use --join together with --ca-cert: a node that joins trusts the server's own " +
      "CA; give one of them"],
  ["a token that was cut", ["--join=tnl1.x"],
    "Cannot use the join token: it has 2 parts; wanted the whole line that `tunnel token " +
      "create` printed, tnl1.<CA>.<id>.<secret>"],
  ["a node's name that is none", [`--join=${TOKEN}`, "--node=A"],
    'Cannot use --node: saw "A", wanted lower-case letters, digits, ".", "_" and "-", at ' +
      'most 200, with a letter or digit at both ends, and not "tunnel-server"'],
  ["servers in two ways", [CA, "--server=a:1", "--proxy-server-host=b"],
    "Cannot use --server together with --proxy-server-host: both say where the server is; " +
      "give one of them"],
  ["a server as a URL", [CA, "--server=https://a"],
    'Cannot use --server: saw "https://a", wanted HOST:PORT; leave out what ends in ://, and any path'],
  ["a certificate without its key", [CA, "--agent-cert=x"],
    "Cannot use --agent-cert alone: --agent-key belongs to it; give both"],
  ["a wait longer than its cap", [CA, "--sync-interval=20s"],
    "Cannot use --sync-interval=20s: it is more than --sync-interval-cap=10s; raise the cap"],
  ["port 0 to connect to", [CA, "--proxy-server-port=0"],
    "Cannot use --proxy-server-port=0: a server to connect to has a port; give the one " +
      "that the server printed"],
  ["a relative socket", [CA, "--allow-unix=x.sock"],
    'Cannot use --allow-unix: saw "x.sock", wanted an absolute path'],
  ["an identifier nobody knows", [CA, "--identifiers=hots=a"],
    'Cannot use --agent-identifiers: saw "hots=a", wanted key=value pairs joined by &. ' +
      'Cannot use the agent identifier "hots": it must be one of host, ipv4, ipv6, cidr, ' +
      'uid, default-route'],
  ["no links at all", [CA, "--links=0"],
    'Cannot use --links: saw "0", wanted a whole number from 1 to 16'],
  ["a count source there is not", [CA, "--server-count-source=min"],
    'Cannot use --server-count-source: saw "min", wanted one of default, max, ""'],
];

for (const [name, argv, line] of REFUSED) {
  Deno.test(`agentOptions() refuses ${name} in one line`, () => {
    const error = assertThrows(() => options(...argv), UsageError);
    assertEquals(error.message, line);
  });
}

Deno.test("--bench-target=false takes the bench target away", () => {
  const { dials } = options(CA, "--bench-target=false");
  assertEquals(dials.hasBenchTarget, false);
});

Deno.test("an agent counts leases by a selector, under both names of the flag", () => {
  const expected = {
    namespace: "kube-system",
    labelSelector: "k8s-app=konnectivity-server",
    source: "leases",
  };
  assertEquals(leases("--count-server-leases"), expected as never);
  assertEquals(
    leases(
      "--count-server-leases",
      "--lease-label=a in (b, c)",
      "--server-count-source=max",
      "--kubeconfig=k",
    ),
    {
      ...expected,
      labelSelector: "a in (b, c)",
      source: "max",
      kubeconfig: "k",
    },
  );
});
