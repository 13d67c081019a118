import { assert, assertEquals, assertMatch } from "@std/assert";
import { readToEnd } from "../../tests/support/peers/sockets.ts";
import { nextTurn, until } from "../../tests/support/watch/event_loop.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { plain } from "../admin/http_endpoints.ts";
import {
  ADMIN_ROUTES,
  OpenedAdminPort,
} from "../../tests/support/rigs/opened_admin_port.ts";
import { AdminPort, apiBeside } from "./admin_port.ts";
import { listenUnix } from "./listeners.ts";

Deno.test("a token says who asks, and what he may; without one others are served as ever", async () => {
  await using one = await OpenedAdminPort.open();
  const operator = await one.ask("GET", "/v1/who", one.bearer());
  assertEquals(operator.said, { role: "operate", name: "admin.token" });
  const viewer = one.bearer("admin-view.token");
  assertEquals((await one.ask("GET", "/v1/who", viewer)).said.role, "view");
  assertEquals((await one.ask("POST", "/v1/do", one.bearer())).status, 200);
  assertEquals((await one.ask("POST", "/v1/do", viewer)).status, 403);
  for (const authorization of ["", "Bearer x", `Basic ${one.token()}`]) {
    const refused = await one.ask("GET", "/v1/who", { authorization });
    assertEquals(refused.status, 401);
    assertMatch(refused.said.message, /admin\.token/);
    assert(!refused.said.message.includes(one.token()));
  }
  assertEquals((await one.ask("GET", "/metrics")).said, "metrics");
  assertEquals(one.did, [
    "admin.token /v1/do 200",
    "admin-view.token /v1/do 403",
  ]);
});

Deno.test("a token that others can read, or have put there, is none", async () => {
  await using one = await OpenedAdminPort.open();
  const path = `${one.folder}/admin.token`;
  const status = async () =>
    (await one.ask("GET", "/v1/who", one.bearer())).status;
  assertEquals(await status(), 200);
  Deno.chmodSync(path, 0o644);
  assertEquals(await status(), 401);
  Deno.chmodSync(path, 0o600);
  assertEquals(await status(), 200);
  if (Deno.uid() === 0) {
    // The folder was writable for that user.
    Deno.chownSync(path, 65_534, 65_534);
    assertEquals(await status(), 401);
  }
  Deno.chmodSync(path, 0o644);
  const before = one.token();
  const again = new OpenedAdminPort({}, one.folder);
  await again.port.open();
  again.port.close();
  assertMatch(again.log.take().join(), /its mode is 0644.*was put there/);
  assert(one.token() !== before);
  assertEquals(await status(), 200);
});

Deno.test("pages of other sites get nothing, with whatever credentials", async () => {
  await using one = await OpenedAdminPort.open();
  const token = one.bearer();
  const plainToken = { authorization: token.authorization };
  // deno-fmt-ignore: the columns are the point.
  const cases = [
    ["GET",  "/v1/who", { ...token, origin: "http://evil.example" },                403],
    ["GET",  "/v1/who", { ...token, origin: "null" },                               403],
    ["GET",  "/v1/who", { ...token, origin: "http://127.0.0.1:1" },                 403],
    ["GET",  "/v1/who", { ...token, "sec-fetch-site": "cross-site" },               403],
    ["GET",  "/v1/who", { ...token, "sec-fetch-site": "same-site" },                403],
    ["GET",  "/v1/who", { ...token, host: "evil.example" },                         421],
    ["GET",  "/v1/who", { ...token, host: "127.0.0.1.nip.io" },                     421],
    ["POST", "/v1/do",  plainToken,                                                 403],
    ["POST", "/v1/session", { origin: "http://evil.example", "x-tunnel-admin": "1" }, 403],
    ["POST", "/v1/session", {},                                                     403],
    ["OPTIONS", "/v1/do", { origin: "http://evil.example" },                        403],
    ["GET",  "/v1/who", { ...token, origin: `http://${one.host}` },                 200],
    ["POST", "/v1/do",  { ...token, origin: `http://${one.host}`, "sec-fetch-site": "same-origin" }, 200],
  ] as const;
  for (const [method, path, headers, status] of cases) {
    const answer = await one.ask(method, path, headers);
    assertEquals(answer.status, status, `${method} ${JSON.stringify(headers)}`);
    assert(!/access-control/i.test(answer.head));
  }
});

Deno.test("a browser is let in by a code, once, as the one who asked for it", async () => {
  await using one = await OpenedAdminPort.open();
  const login = async (file: string, body = "{}") => {
    const headers = { ...one.bearer(file), "content-type": "application/json" };
    return (await one.ask("POST", "/v1/logins", headers, body)).said;
  };
  const enter = (code: string) =>
    one.ask(
      "POST",
      "/v1/session",
      { "x-tunnel-admin": "1", "content-type": "application/json" },
      JSON.stringify({ code }),
    );
  const { code, url } = await login("admin.token");
  assertEquals(url, `http://${one.host}/dashboard/#code=${code}`);
  const entered = await enter(code);
  assertEquals(entered.said, {
    name: "admin.token (browser)",
    role: "operate",
  });
  const set = /set-cookie: (.*)/.exec(entered.head)![1]!;
  assertMatch(
    set,
    /^tunnel_admin_\d+=[^;]{64,}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
  );
  assertEquals((await enter(code)).status, 401);
  const cookie = `theme=dark; ${set.split(";")[0]}`;
  const guard = { cookie, "x-tunnel-admin": "1" };
  assertEquals((await one.ask("POST", "/v1/do", guard)).status, 200);
  assertEquals((await one.ask("POST", "/v1/do", { cookie })).status, 403);
  assertEquals(
    (await one.ask("GET", "/v1/session", { cookie })).said.role,
    "operate",
  );
  assertEquals((await one.ask("POST", "/v1/session/end", guard)).status, 200);
  assertEquals((await one.ask("GET", "/v1/session", { cookie })).status, 401);
  // Who may only look gives no more than that to his browser.
  for (
    const [file, body] of [
      ["admin-view.token", '{"role":"operate"}'],
      ["admin.token", '{"role":"view"}'],
    ] as const
  ) {
    const { code } = await login(file, body);
    assertEquals((await enter(code)).said.role, "view");
  }
});

Deno.test("the socket is for its owner, who needs no token", async () => {
  await using one = await OpenedAdminPort.open();
  const { mode } = await Deno.stat(`${one.folder}/admin.sock`);
  assertEquals(mode! & 0o777, 0o600);
  assertEquals((await one.onSocket("GET", "/v1/who")).said, {
    role: "operate",
    name: `uid ${Deno.uid()}`,
  });
  assertEquals((await one.onSocket("POST", "/v1/do")).status, 200);
  assertEquals((await one.onSocket("POST", "/v1/logins")).said.code.length, 64);
  one.port.close();
  const left = [...Deno.readDirSync(one.folder)].map(({ name }) => name);
  assertEquals(left.sort(), ["admin-view.token", "admin.token"]);
});

Deno.test("one that is closed while it opens has written what it began, and no more", async () => {
  // How far it has come is chance.
  for (let round = 0; round < 20; round++) {
    await using one = new OpenedAdminPort();
    const left = () => [...Deno.readDirSync(one.folder)].map((at) => at.name);
    one.port.openSoon();
    await until(() => left().length > 0);
    one.port.close();
    await one.port.finished;
    const whole = left();
    assertEquals(whole.filter((name) => !/^admin.*\.token$/.test(name)), []);
    await nextTurn();
    assertEquals(left(), whole);
  }
});

Deno.test("a path that another program has is left to it, and said", async () => {
  await using one = await OpenedAdminPort.open();
  const second = new AdminPort({
    address: { hostname: "127.0.0.1", port: 0 },
    access: { stateDirectory: one.folder },
    log: one.log,
    handler: apiBeside(ADMIN_ROUTES, () => () => plain(200, "")),
  });
  await second.open();
  assertEquals(second.socket, "");
  assertMatch(
    one.log.take().join(),
    /something listens there already: ask this/,
  );
  second.close();
  const path = `${one.folder}/named.sock`;
  const other = await listenUnix(path, {
    onConnection: (conn) => conn.close(),
    onProblem: () => {},
  });
  const named = new OpenedAdminPort({ socket: path });
  await named.port.open().then(
    () => assert(false),
    (error) => assertMatch(error.message, /something listens there already/),
  );
  other.close();
  await named[Symbol.asyncDispose]();
});

Deno.test("a program without an admin port is asked by its socket alone", async () => {
  const folder = await Deno.makeTempDir();
  const socket = `${folder}/own.sock`;
  const port = new AdminPort({
    access: { socket },
    log: new RecordedLog(),
    handler: apiBeside(ADMIN_ROUTES, () => () => plain(200, "metrics")),
  });
  try {
    await port.open();
    assertEquals([port.address, port.port, port.socket], ["", 0, socket]);
    const conn = await Deno.connect({ transport: "unix", path: socket });
    const text = "GET /v1/who HTTP/1.0\r\nhost: localhost\r\n\r\n";
    await conn.write(new TextEncoder().encode(text));
    const answer = new TextDecoder().decode(await readToEnd(conn));
    assertMatch(answer, /^HTTP\/1\.1 200 [^]*"role":"operate"/);
    conn.close();
  } finally {
    port.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("programs of one directory have one token, and none without a place for it", async () => {
  await using one = await OpenedAdminPort.open();
  const { mode } = await Deno.stat(`${one.folder}/admin.token`);
  assertEquals(mode! & 0o777, 0o600);
  const before = one.token();
  const again = new OpenedAdminPort({}, one.folder);
  await again.port.open();
  again.port.close();
  assertEquals(one.token(), before);
  const shown = { authorization: `Bearer ${before}0` };
  assertEquals((await one.ask("GET", "/v1/who", shown)).status, 401);
  // A program that began later has made another one.
  await Deno.writeTextFile(`${one.folder}/admin.token`, "f".repeat(64));
  assertEquals((await one.ask("GET", "/v1/who", one.bearer())).status, 200);
  await using none = await OpenedAdminPort.open({ stateDirectory: undefined });
  assertEquals((await none.ask("GET", "/v1/who")).status, 401);
});
