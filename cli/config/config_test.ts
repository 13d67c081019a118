import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { COMMANDS } from "../commands.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { ran } from "../../tests/support/program/command_line.ts";

async function config(
  files: Readonly<Record<string, string>>,
  ...argv: string[]
) {
  const command = await COMMANDS["config"]!();
  return await ran(command.run, argv, {
    environment: (name) => name === "TUNNEL_V" ? "4" : undefined,
    readFile: (path) => {
      if (!Object.hasOwn(files, path)) throw new Deno.errors.NotFound();
      return files[path]!;
    },
  });
}

Deno.test("all that is wrong with files is said, each with its place", async () => {
  const files = {
    "server.yaml": "server-prt: 1\nmode: grpcc\n",
    "p.yaml": "frontends:\n- commonName: a\n  alow: ['*:*:*']\ndial: []\n",
    "s.yml": "services:\n- {name: a, ports: [{port: 0}]}\n",
    "broken.yaml": "services: [\n",
    "good.json": '{"services": []}',
  };
  const { code, output } = await config(files, "check", ...Object.keys(files));
  assertEquals(code, ExitCode.FAILURE);
  const lines = output.trimEnd().split("\n");
  const begins = [
    "server.yaml:1:1: server-prt: there is no such flag; did you mean",
    'server.yaml:2:1: mode: saw "grpcc", wanted one of auto, grpc',
    "p.yaml:2:3: frontends[0]: it neither allows nor denies anything",
    "p.yaml:3:3: frontends[0].alow: there is no such field; did you mean allow?",
    "p.yaml:4:1: dial: there is no such field; did you mean dials?",
    "s.yml:2:22: services[0].ports[0].port: saw 0, wanted 1 to 65535",
    "broken.yaml:",
    "good.json: ok (services)",
  ];
  assertEquals(lines.length, begins.length, output);
  lines.forEach((line, at) => assert(line.startsWith(begins[at]!), line));
});

Deno.test("a file that looks like nothing needs --kind", async () => {
  const files = { "x.yaml": "colour: red\n" };
  const unknown = await config(files, "check", "x.yaml");
  assertEquals(unknown.code, ExitCode.USAGE);
  assertStringIncludes(unknown.errors, "say it by --kind (server, agent");
  const told = await config(files, "check", "--kind", "policy", "x.yaml");
  assertEquals(told.code, ExitCode.FAILURE);
  assertStringIncludes(told.output, "x.yaml:1:1: colour: there is no such");
  const wrong = await config(files, "check", "--kind=polcy", "x.yaml");
  assertStringIncludes(wrong.errors, "did you mean policy?");
  assertEquals((await config({}, "check", "x.yaml")).code, ExitCode.USAGE);
  assertEquals((await config({}, "check")).code, ExitCode.USAGE);
  assertEquals((await config({})).code, ExitCode.USAGE);
  for (const words of ["check x.yaml --all", "print --kind=server"]) {
    const { code, errors } = await config(files, ...words.split(" "));
    assertEquals(code, ExitCode.USAGE);
    assertStringIncludes(errors, "it belongs to");
  }
});

Deno.test("print says where each value is from, and no secret", async () => {
  const files = {
    "s.yaml": "health-port: 1\nstate: etcds://root:hunter2@10.0.0.1:2379/x\n",
  };
  const { code, output } = await config(
    files,
    ...["print", "server", "--file", "s.yaml", "-o", "json"],
    ...["--", "--mode=grpc"],
  );
  assertEquals(code, ExitCode.OK);
  const flags = new Map(
    (JSON.parse(output) as { flag: string; value: string; from: string }[])
      .map(({ flag, value, from }) => [flag, [value, from]]),
  );
  assertEquals(flags.get("health-port"), ["1", '"health-port" in s.yaml']);
  assertEquals(flags.get("v"), ["4", "$TUNNEL_V"]);
  assertEquals(flags.get("mode"), ["grpc", "--mode"]);
  assertEquals(flags.get("agent-port"), ["8091", "default"]);
  assert(!output.includes("hunter2"), output);
});

Deno.test("print knows the proxy, whose --config holds services", async () => {
  const { code, output } = await config(
    {},
    ...["print", "proxy", "--file", "s.yaml", "--", "--admin-port=1"],
  );
  assertEquals(code, ExitCode.OK);
  const rows = output.trimEnd().split("\n").map((row) => row.split(/ {2,}/));
  assertEquals(rows.slice(1).toSorted(), [
    ["admin-port", "1", "--admin-port"],
    ["config", "s.yaml", "--config"],
    ["v", "4", "$TUNNEL_V"],
  ]);
  const whole = await config({}, "print", "proxy", "--all");
  assertStringIncludes(whole.output, "local-addresses");
  const unknown = await config({}, "print", "planet");
  assertEquals(unknown.code, ExitCode.USAGE);
  assertStringIncludes(unknown.errors, '"planet" (wanted one of server, agent');
});

async function problemsOf(
  text: string,
  ...argv: string[]
): Promise<readonly string[]> {
  const { output } = await config({ "x.yaml": text }, "check", ...argv);
  return output.trimEnd().split("\n").filter((line) => !/: ok/.test(line));
}

/** Kind, file, and the lines that are said, as they begin and go on. */
const TOGETHER: readonly (readonly [string, string, ...RegExp[]])[] = [
  [
    "server",
    "kubelet-port: 10250\nuds-name: /run/x\nserver-port: 8090\n" +
    "csr-approver-service-account: a/b\ntls-min-version: VersionTLS12\n" +
    "cipher-suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n" +
    "discovery-listen: 127.0.0.1:1\n",
    /^x.yaml:1:1: the document: .* --kubelet-server-ca-cert/,
    /^x.yaml:4:1: .*--csr-approver-service-account alone/,
    /^x.yaml:7:1: .*--discovery-listen without --discovery/,
  ],
  ["server", "cluster-cert: a\n", /^x.yaml:1:1: .*--cluster-key belongs/],
  [
    "server",
    "# a\nuds-name: /run/x\nserver_port: 8090\n",
    /^x.yaml:3:1: .*--server-port=8090 together with --uds-name/,
  ],
  ["server", "admin-socket-group: no such group\n"],
  ["server", "state: etcds://a:1\nstate-key-file: /nowhere\n"],
  ["agent", "allow: ['tcp:*:22']\n"],
  ["agent", "proxy-server-host: a\nserver: b:1\n", /:2:1: .*--server together/],
  ["agent", "ca-cert: a\njoin: tnl1.x\n", /:2:1: .*--join together with --ca/],
  ["agent", "join: hunter2\nserver: a:1\n", /Cannot join|token/],
  ["agent", "join-file: /nowhere\nserver: a:1\n"],
  ["agent", "sync-interval: 2m\nsync-interval-cap: 1m\n", /:1:1: .*raise the/],
  ["yurttunnel-agent", "ca-cert: a\n"],
  [
    "yurttunnel-agent",
    "tunnelserver-service: nowhere\n",
    /:1:1: .*wanted NAMESPACE\/NAME:PORT/,
  ],
  ["dial", "egress-config: a\nserver: b\n", /:1:1|:2:1: .*--server together/],
  ["dial", "egress-config: /nowhere\n"],
  ["forward", "as-node: true\ncert: a\nkey: b\n", /--cert as a node/],
  ["forward", "state-dir: /nowhere\n"],
  ["bench", "serve: 7007\nnode: a\n", /--node together with --serve/],
  ["bench", "serve: 7007\n"],
];

Deno.test("check says which flags exclude or lack each other", async () => {
  for (const [kind, text, ...says] of TOGETHER) {
    const lines = await problemsOf(text, "--kind", kind, "x.yaml");
    const all = `${text} → ${lines.join("\n")}`;
    for (const said of says) assert(lines.some((it) => said.test(it)), all);
    assertEquals(lines.length >= says.length, true, all);
    if (says.length === 0) assertEquals(lines, [], all);
    assert(!lines.join().includes("hunter2"), all);
  }
});

Deno.test("a wrong flag hides what would only follow from it", async () => {
  const lines = await problemsOf("cluster-cert: a\ncluster-kye: b\n", "x.yaml");
  assertEquals(lines.length, 1);
  assert(
    lines[0]!.includes("did you mean --cluster-key?") ||
      lines[0]!.includes("cluster-key"),
    lines[0],
  );
});

Deno.test("flags behind -- count beside those of a file", async () => {
  const text = "cluster-cert: a\n";
  const argv = ["x.yaml", "--", "--cluster-key", "b", "--cluster-ca-cert=c"];
  assertEquals(
    await problemsOf(text, ...argv, "--uds-name=/run/x"),
    [],
  );
  const files = { "x.yaml": text };
  const wrong = await config(files, "check", "x.yaml", "--", "--clster-key=b");
  assertEquals(wrong.code, ExitCode.USAGE);
  assertStringIncludes(wrong.errors, "--clster-key");
});

Deno.test("what a file is follows from what is in it, and its name", async () => {
  const files = {
    "admins.yaml": "admins: [{commonName: a, role: view}]\n",
    "etcd.json": '{"cluster": {"machines": ["http://a:1"]}}',
    "dial.yaml": "server: unix:/run/x\n",
    "node7.yaml": "server: a:8091\n",
    "b.yaml": "measure: [rtt]\nconnections: 4\n",
  };
  const { output } = await config(files, "check", ...Object.keys(files));
  assertEquals(output.trimEnd().split("\n"), [
    "admins.yaml: ok (policy)",
    "etcd.json: ok (etcd-config)",
    "dial.yaml: ok (dial)",
    "node7.yaml: ok (agent)",
    "b.yaml: ok (bench)",
  ]);
});

Deno.test("flags in effect hide what the bundle hides", async () => {
  const url = "http://u:S3@127.0.0.1:1/x?token=S3&api_key=S3&sig=S3";
  const files = { "s.yaml": `services-url: "${url}"\n` };
  const { output } = await config(files, "print", "server", "--file=s.yaml");
  assertStringIncludes(output, "127.0.0.1:1/x?token=(hidden)&api_key=(hidden)");
  assert(!output.includes("S3"));
});

Deno.test("a schema is printed for editors", async () => {
  const { output } = await config({}, "schema", "server");
  const schema = JSON.parse(output);
  assertEquals(
    schema.$schema,
    "https://json-schema.org/draft/2020-12/schema",
  );
  assert("server-port" in schema.properties);
  assertStringIncludes((await config({}, "schema")).output, "egress-selector");
});
