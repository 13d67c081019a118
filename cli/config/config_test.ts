import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { COMMANDS } from "../commands.ts";
import { ExitCode } from "../program/exit_codes.ts";
import { withoutSecrets } from "../flags/secrets.ts";

async function config(
  files: Readonly<Record<string, string>>,
  ...argv: string[]
) {
  let output = "";
  let errors = "";
  const command = await COMMANDS["config"]!();
  const code = await command.run({
    argv,
    environment: (name) => name === "TUNNEL_V" ? "4" : undefined,
    readFile: (path) => {
      if (!Object.hasOwn(files, path)) throw new Deno.errors.NotFound();
      return files[path]!;
    },
    print: (text) => output += text,
    printError: (text) => errors += text,
  });
  return { code, output, errors };
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
    "p.yaml:2:1: frontends[0]: wanted one of allow, deny at least",
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

Deno.test("what looks like a secret is hidden, whatever is around it", () => {
  const key =
    "-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----";
  const texts = [
    key,
    `"${key.replaceAll("\n", "\\n")}"`,
    "-----BEGIN EC PRIVATE KEY-----\nMIIsecret",
    "https://user:MIIsecret@etcd:2379/",
    "Authorization: Bearer MIIsecret",
    '{"authorization":"Basic MIIsecret"}',
    "password=MIIsecret&x=1",
    "--token MIIsecret --token=MIIsecret".replace("--token MIIsecret ", ""),
    "got Bearer MIIsecret from the peer",
    "cookie: session=MIIsecret",
    `eyJhbGciOi.${"MIIsecret"}.x`,
    `${"0123456789abcdef".repeat(4)}`,
  ];
  for (const text of texts) {
    const shown = withoutSecrets(text);
    assert(!/MIIsecret|0123456789abcdef/.test(shown), `${text} → ${shown}`);
    assertStringIncludes(shown, "(hidden)");
  }
  const harmless = "agent node1 linked to https://tunnel.example:8091";
  assertEquals(withoutSecrets(harmless), harmless);
});
