import { assertEquals, assertThrows } from "@std/assert";
import { formatJoinedNode } from "../../agent/identity/joined_node.ts";
import type { NodeRoute, TunnelRoute } from "../../client/tunnel_route.ts";
import { UsageError } from "./usage_error.ts";
import { readFlags } from "./read_flags.ts";
import { ROUTE_FLAGS, routeIfAny, routeOf } from "./route_flags.ts";

const SERVERS = [{ host: "tunnel.example", port: 8091 }];

/** A machine whose node has joined, as its user. */
async function onNode(
  work: (machine: {
    readonly home: string;
    route(...argv: string[]): TunnelRoute;
    routeIfAny(...argv: string[]): TunnelRoute | undefined;
  }) => void,
  node: string | undefined = formatJoinedNode({
    name: "edge-1",
    identifiers: "",
    servers: SERVERS,
  }),
) {
  const home = await Deno.makeTempDir({ prefix: "node-" });
  const read = (argv: readonly string[]) => {
    const sources = {
      argv,
      environment: (name: string) =>
        name === "XDG_STATE_HOME" ? home : undefined,
      readFile: Deno.readTextFileSync,
    };
    return [readFlags("dial", ROUTE_FLAGS, sources), sources] as const;
  };
  try {
    await Deno.mkdir(`${home}/agent`);
    if (node !== "") await Deno.writeTextFile(`${home}/agent/node.json`, node);
    work({
      home,
      route: (...argv) => routeOf(...read(argv), `${home}/agent`),
      routeIfAny: (...argv) => routeIfAny(...read(argv), `${home}/agent`),
    });
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/** The route of a node whose identity is in `root`. */
function joined(root: string, addresses = SERVERS): NodeRoute {
  return {
    kind: "node",
    addresses,
    files: {
      ca: `${root}/ca.pem`,
      cert: `${root}/cert.pem`,
      key: `${root}/key.pem`,
    },
    serverName: "tunnel-server",
    proxyEnv: { httpsProxy: undefined, noProxy: undefined },
  };
}

Deno.test("a node that has joined goes as itself to where it joined", () =>
  onNode(({ home, route }) => {
    const root = `${home}/agent`;
    const elsewhere = [{ host: "::1", port: 9091 }];
    assertEquals(route(`--state-dir=${root}`), joined(root));
    assertEquals(
      route(`--state-dir=${root}`, "--as-node", "--server=[::1]:9091"),
      joined(root, elsewhere),
    );
  }));

Deno.test("files say who a node is that has not joined", () =>
  onNode(({ route }) => {
    const argv = ["--agent-cert=a.crt", "--agent-key=a.key", "--ca-cert=ca"];
    const expected: NodeRoute = {
      kind: "node",
      addresses: [{ host: "t", port: 1 }],
      files: { ca: "ca", cert: "a.crt", key: "a.key" },
      proxyEnv: { httpsProxy: undefined, noProxy: undefined },
    };
    assertEquals(route(...argv, "--server=t:1"), expected);
    assertEquals<TunnelRoute>(route(...argv, "--server=t:1,u"), {
      ...expected,
      addresses: [...expected.addresses, { host: "u", port: 8091 }],
    });
    assertEquals(route(...argv, "--server=t:1", "--tls-server-name=x"), {
      ...expected,
      serverName: "x",
    });
  }, ""));

Deno.test("what says two things about a node's route is refused in one line", () =>
  onNode(({ home, route }) => {
    const state = `--state-dir=${home}/agent`;
    const pair = ["--agent-cert=c", "--agent-key=k"];
    // deno-fmt-ignore: the columns are the point.
    const cases: readonly (readonly [argv: readonly string[], says: string])[] = [
      [[state, "--cert=c", "--key=k"],         "Cannot use --cert as a node: it is for a frontend; use --agent-cert"],
      [[state, "--proxy-mode=http-connect"],   "Cannot use --proxy-mode=http-connect as a node"],
      [[state, "--server=unix:/s"],            "Cannot connect as a node to unix:/s: that is a frontend"],
      [[state, "--server=t:1,unix:/s"],        "Cannot connect as a node to unix:/s: that is a frontend"],
      [[state, "--ca-cert=ca"],                "Cannot use --ca-cert for a node that has joined"],
      [[state, ...pair],                       "Cannot use --state-dir together with --agent-cert"],
      [[...pair, "--ca-cert=ca"],              "Cannot use --agent-cert without --ca-cert and --server"],
      [[...pair, "--server=t:1"],              "Cannot use --agent-cert without --ca-cert and --server"],
      [["--agent-cert=c"],                     "Cannot use --agent-cert alone: --agent-key"],
      [[`--state-dir=${home}`],                `Cannot connect as a node: there is no identity in ${home}; tunnel`],
      [["--as-node", "--egress-config=e"],     "Cannot use --as-node together with --egress-config"],
    ];
    for (const [argv, says] of cases) {
      const { message } = assertThrows(() => route(...argv), UsageError);
      assertEquals(message.slice(0, says.length), says);
      assertEquals(message.includes("\n"), false);
    }
  }));

Deno.test("an identity that cannot be read is refused by its file", async () => {
  await onNode(({ home, route }) => {
    assertThrows(
      () => route(`--state-dir=${home}/agent`),
      UsageError,
      `Cannot use ${home}/agent/node.json: it is no whole JSON document`,
    );
  }, "{");
  const nowhere = { name: "edge-1", identifiers: "", servers: [] };
  await onNode(({ home, route }) => {
    assertThrows(
      () => route(`--state-dir=${home}/agent`),
      UsageError,
      "names none; give --server",
    );
  }, formatJoinedNode(nowhere));
});

Deno.test("without another route a joined node goes as itself", () =>
  onNode(({ home, route, routeIfAny }) => {
    assertEquals(route(), joined(`${home}/agent`));
    assertEquals(routeIfAny(), joined(`${home}/agent`));
    assertEquals(route("--server=unix:/s.sock").kind, "tunnel");
  }));

Deno.test("who has not joined, and names nothing, has no route", () =>
  onNode(({ route, routeIfAny }) => {
    assertEquals(routeIfAny(), undefined);
    assertThrows(() => route(), UsageError, "or tunnel join on this node");
  }, ""));
