import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "./usage_error.ts";
import { flag } from "./flag.ts";
import { type FlagReading, type FlagSources, readFlags } from "./read_flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

const details = { group: "Test", help: "A flag." };

const TABLE = {
  "name": flag.text("nobody", details),
  "server-port": flag.port(8090, details),
  "agent-id": flag.text("", { ...details, environment: ["PROXY_AGENT_ID"] }),
  "agent-identifiers": flag.text("", { ...details, aliases: ["identifiers"] }),
  "deep": flag.boolean(false, { ...details, short: "d" }),
  "keepalive-time": flag.duration(10_000, 1, details),
  "v": flag.count(2, 0, 10, details),
  "alpn-proto": flag.list([], details),
  "strategies": flag.choices(["a", "b"], ["a"], details),
  "config": flag.file({ ...details, holdsFlags: true }),
  "old": flag.text("", {
    ...details,
    status: { kind: "idle", because: "times have changed" },
  }),
  "soon": flag.boolean(false, {
    ...details,
    status: { kind: "missing", because: "it is not built yet" },
  }),
} as const;

function read(
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): FlagReading<typeof TABLE> {
  const sources: FlagSources = {
    argv,
    environment: (name) => environment[name],
    readFile(path) {
      const content = files[path];
      if (content === undefined) throw new Deno.errors.NotFound("No such file");
      return content;
    },
  };
  return readFlags("server", TABLE, sources);
}

// deno-fmt-ignore: the columns are the point.
const SPELLINGS: readonly [argv: string[], name: keyof typeof TABLE, value: unknown][] = [
  [["--name=x"],                         "name", "x"],
  [["--name", "x"],                      "name", "x"],
  [["--name", "--deep"],                 "name", "--deep"],
  [["--name=a=b"],                       "name", "a=b"],
  [["--name=a", "--name=b"],             "name", "b"],
  [["--name="],                          "name", "nobody"],
  [["--name=12"],                        "name", "12"],
  [["--server_port=1"],                  "server-port", 1],
  [["--server-port", "0"],               "server-port", 0],
  [["--server-port=65535"],              "server-port", 65_535],
  [["--identifiers=host=a"],             "agent-identifiers", "host=a"],
  [["--deep"],                           "deep", true],
  [["-d"],                               "deep", true],
  [["--deep=1"],                         "deep", true],
  [["--deep=t"],                         "deep", true],
  [["--deep=F"],                         "deep", false],
  [["--deep", "--deep=false"],           "deep", false],
  [["--keepalive-time=1h0m0s"],          "keepalive-time", 3_600_000],
  [["-v=4"],                             "v", 4],
  [["-v4"],                              "v", 4],
  [["-v", "4"],                          "v", 4],
  [["--v=4"],                            "v", 4],
  [["-name=x"],                          "name", "x"],
  [["-name", "-x"],                      "name", "-x"],
  [["-server_port=1"],                   "server-port", 1],
  [["-identifiers=host=a"],              "agent-identifiers", "host=a"],
  [["-deep"],                            "deep", true],
  [["-deep=false"],                      "deep", false],
  [["--alpn-proto=[]"],                  "alpn-proto", []],
  [["--alpn-proto=[a,b]"],               "alpn-proto", ["a", "b"]],
  [["--alpn-proto=a,b", "--alpn-proto=c"], "alpn-proto", ["a", "b", "c"]],
  [["--alpn-proto="],                    "alpn-proto", []],
  [["--strategies=b,a"],                 "strategies", ["b", "a"]],
  [[],                                   "strategies", ["a"]],
];

for (const [argv, name, value] of SPELLINGS) {
  Deno.test(`readFlags() reads "${argv.join(" ")}"`, () => {
    assertEquals(read(argv).values[name], value);
  });
}

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [argv: string[], line: string][] = [
  [["--sever-port=1"],
    "Unknown flag --sever-port; did you mean --server-port? (tunnel help server lists all flags)"],
  [["--zzzzzz"],       "Unknown flag --zzzzzz (tunnel help server lists all flags)"],
  [["-nmae=x"],        "Unknown flag -nmae; did you mean --name? (tunnel help server lists all flags)"],
  [["-v11"],           'Cannot use --v: saw "11", wanted a whole number from 0 to 10'],
  [["-verison"],       "Unknown flag -verison; did you mean --version? (tunnel help server lists all flags)"],
  [["-server-port"],   "Cannot read -server-port: its value is missing; write -server-port=PORT"],
  [["-x"],             "Unknown flag -x (tunnel help server lists all flags)"],
  [["--name"],         "Cannot read --name: its value is missing; write --name=TEXT"],
  [["--server-port=65536"], 'Cannot use --server-port: saw "65536", wanted a port (0 to 65535)'],
  [["--server-port=http"],  'Cannot use --server-port: saw "http", wanted a port (0 to 65535)'],
  [["--deep=yes"],     'Cannot use --deep: saw "yes", wanted true or false'],
  [["--keepalive-time=10"],
    'Cannot use --keepalive-time: saw "10", wanted a duration such as 24h, 5m, 1.5s ' +
      'or 100ms, from 1ms to 596h31m23.647s'],
  [["--keepalive-time=9999h"],
    'Cannot use --keepalive-time: saw "9999h", wanted a duration such as 24h, 5m, 1.5s ' +
      'or 100ms, from 1ms to 596h31m23.647s'],
  [["--v=11"],         'Cannot use --v: saw "11", wanted a whole number from 0 to 10'],
  [["--strategies=a,c"], 'Cannot use --strategies: saw "a,c", wanted names out of a, b'],
  [["--soon"],         "Cannot use --soon: it is not built yet; remove it"],
];

for (const [argv, line] of REFUSED) {
  Deno.test(`readFlags() refuses "${argv.join(" ")}" in one line`, () => {
    const error = assertThrows(() => read(argv), UsageError);
    assertEquals(error.message, line);
  });
}

Deno.test("the command line wins over environment, file and default", () => {
  const environment = { TUNNEL_SERVER_PORT: "2" };
  const files = { "t.yaml": "server-port: 3\n" };
  const line = ["--config=t.yaml"];
  const all = [...line, "--server-port=1"];
  assertEquals(read(all, environment, files).values["server-port"], 1);
  assertEquals(read(line, environment, files).values["server-port"], 2);
  assertEquals(read(line, {}, files).values["server-port"], 3);
  assertEquals(read([]).values["server-port"], 8090);
});

Deno.test("an empty value falls through to the next source", () => {
  const environment = { TUNNEL_AGENT_ID: "", PROXY_AGENT_ID: "node7" };
  assertEquals(read(["--agent-id="], environment).values["agent-id"], "node7");
  assertEquals(read(["--agent-id="]).given.has("agent-id"), false);
});

Deno.test("Kubernetes' service links are not taken for flags", () => {
  const environment = { TUNNEL_SERVER_PORT: "tcp://10.0.0.1:8090" };
  assertEquals(read([], environment).values["server-port"], 8090);
});

Deno.test("a bad environment variable is called by its own name", () => {
  const error = assertThrows(() => read([], { TUNNEL_V: "loud" }), UsageError);
  assertEquals(
    error.message,
    'Cannot use $TUNNEL_V: saw "loud", wanted a whole number from 0 to 10',
  );
});

Deno.test("a config file holds numbers, booleans, lists and texts", () => {
  const yaml = "server_port: 1\ndeep: true\nalpn-proto: [a, b]\n" +
    "keepalive-time: 2s\nstrategies: []\nname: null\n";
  const { values } = read(["--config", "t.yml"], {}, { "t.yml": yaml });
  assertEquals(values["server-port"], 1);
  assertEquals(values["deep"], true);
  assertEquals(values["alpn-proto"], ["a", "b"]);
  assertEquals(values["keepalive-time"], 2000);
  assertEquals(values["strategies"], []);
  assertEquals(values["name"], "nobody");
  const json = '{"identifiers": "host=a"}';
  const fromJson = read(["--config=t.json"], {}, { "t.json": json });
  assertEquals(fromJson.values["agent-identifiers"], "host=a");
});

// deno-fmt-ignore: the columns are the point.
const BAD_FILES: readonly [path: string, content: string | undefined, line: string][] = [
  ["t.yaml", "sever-port: 1",
    'Cannot use --config t.yaml: "sever-port": there is no such flag; did you mean server-port?'],
  ["t.yaml", "- a",                 "Cannot use --config t.yaml: saw a list, wanted a map of flag names to values"],
  ["t.yaml", "name: {a: b}",
    'Cannot use --config t.yaml: "name": saw a map, wanted a text, a number, a boolean or a list'],
  ["t.yaml", "a_b: 1\nname: [",     "Cannot use --config t.yaml: it is not YAML"],
  ["t.json", "{",                   "Cannot use --config t.json: it is not JSON"],
  ["t.toml", "",                    "Cannot use --config t.toml: its name ends in neither .json nor .yaml"],
  ["t.yaml", "v: 1\nV: 2",          'Cannot use --config t.yaml: "V": there is no such flag; did you mean v?'],
  ["t.yaml", "server-port: 1\nserver_port: 2",
    'Cannot use --config t.yaml: "server_port": --server-port is there twice; keep one'],
  ["t.yaml", "config: u.yaml",      'Cannot use --config t.yaml: "config": there is no such flag'],
  ["t.yaml", "server-port: x",      'Cannot use "server-port" in t.yaml: saw "x", wanted a port (0 to 65535)'],
  ["t.yaml", "soon: true",          'Cannot use "soon" in t.yaml: it is not built yet; remove it'],
  ["gone.yaml", undefined,          "Cannot use --config gone.yaml: there is no such file"],
];

for (const [path, content, line] of BAD_FILES) {
  Deno.test(`a config file ${path} with ${content} is refused`, () => {
    const files = content === undefined ? {} : { [path]: content };
    const read_ = () => read([`--config=${path}`], {}, files);
    const { message } = assertThrows(read_, UsageError);
    assertEquals(message.slice(0, line.length), line);
    assertEquals(message.includes("\n"), false);
  });
}

Deno.test("an empty config file sets nothing", () => {
  const files = { "t.yaml": "# nothing yet\n" };
  assertEquals(read(["--config=t.yaml"], {}, files).given.size, 1);
});

Deno.test("flags without effect are accepted and reported once", () => {
  const { notices } = read(["--old=x", "--old=y"]);
  assertEquals(notices, ["--old has no effect: times have changed"]);
});

Deno.test("what is tolerated is read in place of it and told, not under our own name", () => {
  const table = {
    "agent-identifiers": flag.text("", {
      ...details,
      aliases: ["identifiers"],
      tolerates: (text) =>
        text === "bad"
          ? { text: "good", notice: "bad is left out" }
          : undefined,
    }),
  };
  const of = (...argv: string[]) => {
    const { values, notices } = readFlags("try", table, words(argv));
    return [values["agent-identifiers"], ...notices];
  };
  assertEquals(of("--agent-identifiers=bad"), [
    "good",
    "--agent-identifiers: bad is left out",
  ]);
  assertEquals(of("--agent-identifiers=fine"), ["fine"]);
  assertEquals(of("--identifiers=bad"), ["bad"]);
});

Deno.test("the default of a flag that does not exist yet is accepted", () => {
  assertEquals(read(["--soon=false", "--old="]).notices, []);
});

Deno.test("words behind -- are operands, whatever they look like", () => {
  const { operands, values } = read(["a", "--deep", "007", "--", "--name=x"]);
  assertEquals(operands, ["a", "007", "--name=x"]);
  assertEquals(values["deep"], true);
  assertEquals(values["name"], "nobody");
});

Deno.test("a text that names part of an object is only a text", () => {
  for (const word of ["--__proto__=x", "--constructor=x", "--toString=x"]) {
    assertThrows(() => read([word]), UsageError, "Unknown flag");
  }
});
