import { assertEquals, assertThrows } from "@std/assert";
import { ADMIN_FLAGS, askedProgram } from "./admin_flags.ts";
import { readFlags } from "./read_flags.ts";
import { UsageError } from "./usage_error.ts";

const OPERATE = "aa".repeat(32);
const VIEW = "bb".repeat(32);

function asked(files: Readonly<Record<string, string>>, ...argv: string[]) {
  const sources = {
    argv,
    environment: (name: string) =>
      name === "XDG_STATE_HOME" ? "/nowhere" : undefined,
    readFile(path: string) {
      const text = new Map(Object.entries(files)).get(path);
      if (text === undefined) throw new Deno.errors.NotFound(path);
      return text;
    },
  };
  const { values, given } = readFlags("status", ADMIN_FLAGS, sources);
  return { ...askedProgram(values, given, sources), form: values.output };
}

const FOLDER = ["--state-dir", "/srv/t"];
const TOKENS = {
  "/srv/t/admin.token": `${OPERATE}\n`,
  "/srv/t/admin-view.token": `${VIEW}\n`,
};

/** Without the sentence for when it is refused, and where the token was. */
function place(files: Readonly<Record<string, string>>, ...argv: string[]) {
  const { program, address } = asked(files, ...argv);
  const { tokenProblem: _, tokenFile: __, ...rest } = {
    tokenProblem: undefined,
    tokenFile: undefined,
    ...address,
  };
  return [program, rest];
}

const tcp = (host: string, port: number, token: string | undefined) => ({
  kind: "tcp" as const,
  host,
  port,
  token,
});

Deno.test("whom to ask is named by one flag, or is the server of this machine", () => {
  const here = (port: number) => tcp("127.0.0.1", port, OPERATE);
  assertEquals(place(TOKENS, ...FOLDER), ["server", here(8095)]);
  assertEquals(place(TOKENS, ...FOLDER, "--agent=local"), [
    "agent",
    here(8094),
  ]);
  assertEquals(place(TOKENS, ...FOLDER, "--proxy=local"), [
    "proxy",
    here(8096),
  ]);
  assertEquals(place(TOKENS, ...FOLDER, "--agent=127.0.0.1:1"), [
    "agent",
    here(1),
  ]);
  assertEquals(place(TOKENS, "--server", "unix:/run/a.sock"), ["server", {
    kind: "unix",
    path: "/run/a.sock",
  }]);
  assertThrows(
    () => asked({}, "--agent=local", "--proxy=local"),
    UsageError,
    "Cannot ask --agent and --proxy at once",
  );
  assertThrows(() => asked({}, "--server=unix:"), UsageError, "wanted unix:/");
  assertThrows(() => asked({}, "--server=here"), UsageError, "HOST:PORT");
});

Deno.test("the socket in the state directory is asked before the port", async () => {
  const folder = Deno.makeTempDirSync();
  const path = `${folder}/admin.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const files = { [`${folder}/admin.token`]: OPERATE, "/t": VIEW };
  const at = ["--state-dir", folder];
  assertEquals(place(files, ...at), ["server", { kind: "unix", path }]);
  // Who gives a token means the port.
  assertEquals(place(files, ...at, "--token-file=/t"), [
    "server",
    tcp("127.0.0.1", 8095, VIEW),
  ]);
  listener.close();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a token goes to loopback alone, whoever names it", () => {
  const { "/srv/t/admin.token": _, ...viewer } = TOKENS;
  assertEquals(place(viewer, ...FOLDER), [
    "server",
    tcp("127.0.0.1", 8095, VIEW),
  ]);
  // Whose the port is counts, unless somebody has named the token.
  const fileOf = (...argv: string[]) => {
    const { address } = asked({ ...TOKENS, "/t": VIEW }, ...argv);
    return address.kind === "tcp" ? address.tokenFile : "";
  };
  assertEquals(fileOf(...FOLDER), "/srv/t/admin.token");
  assertEquals(fileOf(...FOLDER, "--server=[::1]:1"), "/srv/t/admin.token");
  assertEquals(fileOf(...FOLDER, "--token-file=/t"), undefined);
  for (
    const host of [
      ...["10.0.0.1", "0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "localhost."],
      ...["tunnel.example", "127.0.0.1.example", "[::ffff:10.0.0.1]"],
    ]
  ) {
    const away = `--server=${host}:8095`;
    for (const argv of [[away], [away, ...FOLDER]]) {
      const { address } = asked(TOKENS, ...argv);
      assertEquals("token" in address, false, host);
    }
    assertThrows(
      () => asked({ "/t": VIEW }, away, "--token-file=/t"),
      UsageError,
      "Cannot show /t to",
    );
  }
  assertThrows(
    () => asked({ "/t": "no token" }, "--token-file=/t"),
    UsageError,
    "no token of 64 hex digits",
  );
});

Deno.test("a certificate means TLS, all of it", () => {
  const files = ["--ca-cert=a", "--cert=b", "--key=c"];
  assertEquals(place(TOKENS, "--server=tunnel.example:8097", ...files), [
    "server",
    {
      kind: "tcp",
      host: "tunnel.example",
      port: 8097,
      tls: { ca: "a", cert: "b", key: "c" },
    },
  ]);
  assertThrows(() => asked({}, "--ca-cert=a"), UsageError, "give all three");
  assertThrows(() => asked({}, "--cert=b", "--key=c"), UsageError, "all three");
});

Deno.test("--json is --output json, -o and -w are short", () => {
  assertEquals(asked({}, "--json").form, "json");
  assertEquals(asked({}, "-o", "yaml").form, "yaml");
  assertEquals(asked({}, "-w").form, "table");
  assertThrows(() => asked({}, "-o", "xml"), UsageError, "table, wide, json");
});
