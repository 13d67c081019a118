/**
 * What is said to who asks at the wrong port, on the wrong machine, or in the
 * words of another program.
 *
 * @module
 */

import { assertEquals, assertMatch } from "@std/assert";
import { tunnel } from "../../tests/support/program/command_line.ts";

/** Answers as `answer` says, until the test is over. */
async function status(answer: (conn: Deno.TcpConn) => Promise<unknown>) {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const serving = (async () => {
    // What is cut off is asked for once more.
    for await (const conn of listener) {
      await conn.read(new Uint8Array(4_096));
      await answer(conn);
      conn.close();
    }
  })();
  const server = `127.0.0.1:${port}`;
  const { errors } = await tunnel(["status", "--server", server]);
  listener.close();
  await serving;
  return errors;
}

Deno.test("a health port is told from an admin port", async () => {
  const text = "404 page not found\n";
  const head = `HTTP/1.1 404 Not Found\r\ncontent-length: ${text.length}`;
  const said = await status((conn) =>
    conn.write(new TextEncoder().encode(`${head}\r\n\r\n${text}`))
  );
  assertMatch(said, /that is the health port of a program of ours/);
  assertMatch(said, /give the admin port: 8095 of a server/);
});

Deno.test("a port that hangs up on HTTP is told as one of TLS", async () => {
  const said = await status(() => Promise.resolve());
  assertMatch(said, /hangs up on HTTP, as the port for agents does/);
});

Deno.test("on a machine that is an agent a server's questions say so", async () => {
  const home = await Deno.makeTempDir();
  const uid = Deno.uid;
  Deno.uid = () => 1_000;
  try {
    await Deno.mkdir(`${home}/tunnel/agent`, { recursive: true });
    await Deno.writeTextFile(`${home}/tunnel/agent/node.json`, "{}");
    const environment = (name: string) =>
      name === "XDG_STATE_HOME" ? home : undefined;
    for (
      const argv of [
        ["node", "list"],
        ["ping", "n1"],
        ["dashboard"],
        ["xds", "status"],
        ["token", "list"],
        ["ca", "show"],
      ]
    ) {
      const { code, errors } = await tunnel(argv, { environment });
      assertEquals(code, 2, argv.join(" "));
      assertMatch(errors, /this machine is an agent .*--server HOST:PORT/);
    }
    await Deno.mkdir(`${home}/tunnel/server`);
    const { errors } = await tunnel(["token", "list"], { environment });
    assertEquals(errors.includes("is an agent"), false);
  } finally {
    Deno.uid = uid;
    await Deno.remove(home, { recursive: true });
  }
});

Deno.test("words of other programs lead to ours", async () => {
  for (
    const [words, meant] of [
      ["ps", "conn list"],
      ["login", "join"],
      ["netcheck", "doctor"],
      ["ssh", "dial"],
      ["node ls", "list"],
      ["node show", "describe"],
      ["node rm", "forget"],
      ["conn rm", "kill"],
      ["agent --health-port 1", "--health-server-port"],
      ["server --admin-server-port 1", "--admin-port"],
    ] as const
  ) {
    const { code, errors } = await tunnel(words.split(" "));
    assertEquals(code, 2, words);
    assertMatch(errors, new RegExp(`did you mean ${meant}`), words);
  }
});

Deno.test("a policy is tested about a whole target", async () => {
  const words = ["policy", "test", "--as", "alice", "n1"];
  const { code, errors } = await tunnel(words);
  assertEquals(code, 2);
  assertMatch(errors, /HOST:PORT|host:port|port/);
});

Deno.test("version and token take --json and -o json alike", async () => {
  for (const flags of [["--json"], ["-o", "json"]]) {
    const { output } = await tunnel(["version", ...flags]);
    assertEquals(typeof JSON.parse(output).tunnel, "string");
    const nowhere = ["token", "list", "--state-dir", "/nonexistent/x"];
    const { code, errors } = await tunnel([...nowhere, ...flags]);
    assertEquals([code, errors.includes("Unknown flag")], [1, false]);
  }
});
