import { assertEquals, assertMatch } from "@std/assert";
import { StatusCode } from "../../proto/grpc/status.ts";
import { DiscoveryRig } from "../../tests/support/xds/discovery_rig.ts";
import { deadPort } from "../../tests/support/rigs/proxy_rig.ts";
import { ScriptedAds } from "../../tests/support/xds/scripted_ads.ts";
import {
  endpointsOf,
  serviceOf,
} from "../../tests/support/watch/scripted_source.ts";
import { ran } from "../../tests/support/program/command_line.ts";
import { adscCommand } from "./command.ts";

const PART = {
  services: [serviceOf("echo"), serviceOf("db", 5432)],
  endpoints: [endpointsOf("echo", "10.0.0.1:8080", "10.0.0.2:8080")],
};

/** Runs the command. @returns What it printed, and its exit code. */
async function adsc(...argv: readonly string[]) {
  const signals = { addSignalListener() {}, removeSignalListener() {} };
  const { code, output, errors } = await ran(adscCommand(signals).run, argv, {
    environment: (name) => name === "HOME" ? "/nonexistent" : undefined,
    readFile: (path) => Deno.readTextFileSync(path),
  });
  return { code, out: output, err: errors };
}

Deno.test("what a server sends is dumped as JSON", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  const server = `--server=127.0.0.1:${rig.port}`;
  const { code, out } = await adsc(
    ...["grpc", "echo", "none", server, "--wait=absent==1"],
  );
  assertEquals(code, 0);
  const dump = JSON.parse(out);
  assertEquals(dump.cluster.length, 1);
  assertEquals(dump.cluster[0].name, "default/echo:80");
  assertEquals(dump.listener[0].resource.name, "echo");
  assertEquals(dump.absent, { listener: ["none"] });
  assertEquals(dump.status.endpoints.refused, 0);
});

Deno.test("conditions that hold are exit code 0, others 1 with what was seen", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  const server = `--server=http://127.0.0.1:${rig.port}`;
  const good = await adsc(
    ...["envoy", server, "--print=nothing", "--wait=clusters>=2"],
    ...["--wait", "refused==0", "--expect", "no cluster default/none:1"],
    ...["--expect", "default/echo:80=10.0.0.2:8080,10.0.0.1:8080"],
  );
  assertEquals(good, { code: 0, out: "", err: "" });
  const bad = await adsc(
    ...["envoy", server, "--print=nothing", "--timeout=50ms"],
    ...["--expect", "endpoints default/echo:80=10.0.0.2:8080"],
  );
  assertEquals([bad.code, bad.out], [1, ""]);
  // A machine that is busy may not even have heard so much.
  assertMatch(
    bad.err,
    /^tunnel adsc: (?:wanted endpoints default\/echo:80=.*, saw default|not all was heard of).* after 50 ms.*\n$/,
  );
});

Deno.test("what is asked for and is not there is exit code 1, unless it is meant to be", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  const server = `--server=127.0.0.1:${rig.port}`;
  const nothing = ["--print=nothing", server];
  const gone = await adsc("grpc", "nope", ...nothing, "--timeout=500ms");
  assertEquals(gone.code, 1);
  assertMatch(
    gone.err,
    /^tunnel adsc: wanted all that is asked for, saw no listener nope after 500 ms \[TUN119\]\n$/,
  );
  const meant = ["--expect", "no listener nope"];
  assertEquals((await adsc("grpc", "nope", ...nothing, ...meant)).code, 0);
});

Deno.test("a client that is sent away while it stays is exit code 3, at once", async () => {
  using server = new ScriptedAds();
  const running = adsc(
    ...["raw", "cluster", `--server=127.0.0.1:${server.port}`],
    ...["--for=1h", "--print=nothing", "--wait=refused==0"],
  );
  const stream = await server.next();
  await stream.next("cluster");
  stream.answer({ kind: "cluster", version: "1", resources: [] });
  // It is content with that, and stays.
  await stream.next("cluster");
  stream.finish({ code: StatusCode.PERMISSION_DENIED, message: "revoked" });
  const { code, err } = await running;
  assertEquals(code, 3);
  assertMatch(err, /PERMISSION_DENIED: revoked \[TUN701\]\n$/);
});

Deno.test("a server that is away is named, one that refuses is exit code 3", async () => {
  const away = await adsc(
    "proxy",
    `--server=127.0.0.1:${deadPort()}`,
    "--timeout=50ms",
  );
  assertEquals(away.code, 1);
  assertMatch(away.err, /^tunnel adsc: not all was heard of after 50 ms.*\n$/);
  using server = new ScriptedAds();
  const running = adsc("proxy", `--server=127.0.0.1:${server.port}`);
  const code = StatusCode.UNAUTHENTICATED;
  (await server.next()).finish({ code, message: "who are you?" });
  const refused = await running;
  assertEquals(refused.code, 3);
  assertMatch(
    refused.err,
    /^tunnel adsc: Cannot subscribe: .* UNAUTHENTICATED: who are you\? \[TUN701\]\n$/,
  );
});

Deno.test("changes are lines", async () => {
  await using rig = await DiscoveryRig.serving(PART);
  const server = `--server=127.0.0.1:${rig.port}`;
  const changes = await adsc("proxy", server, "--print=changes");
  const lines = changes.out.trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  assertEquals(lines.filter(({ kind }) => kind === "service").length, 2);
});

Deno.test("what cannot be used is exit code 2, in one line", async () => {
  const wrongs: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /Cannot subscribe as nothing: wanted proxy, envoy, grpc NAME… or raw/],
    [["dog"], /Cannot subscribe as "dog"/],
    [["grpc"], /Cannot subscribe as grpc to nothing/],
    [["raw"], /Cannot subscribe to nothing/],
    [["raw", "dog=a"], /Cannot subscribe to "dog=a": wanted one of cluster,/],
    [["raw", "cluster="], /wanted names behind =/],
    [["proxy", "echo"], /Unexpected word "echo": proxy asks for everything/],
    [["proxy", "--wait=dogs>1"], /Cannot use --wait: saw "dogs>1", wanted a/],
    [
      ["proxy", "--expect=nothing"],
      /Cannot use --expect: saw "nothing", wanted/,
    ],
    [
      ["proxy", "--metadata=[]"],
      /Cannot use --metadata: saw "\[\]", wanted a JSON/,
    ],
    [["proxy", "--server=far.example:1"], /this node has not joined/],
    [["proxy", "--tls-server-name=x"], /without TLS/],
  ];
  for (const [argv, message] of wrongs) {
    const { code, err } = await adsc(...argv);
    assertEquals(code, 2, err);
    assertMatch(err, message);
    assertMatch(err, /^tunnel adsc: [^\n]*\n$/);
  }
});
