import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { Timers } from "../proto/sync/clock.ts";
import { ConduitProbe } from "../tests/support/memory/conduit_probe.ts";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { readToEnd, writeAll } from "../tests/support/peers/sockets.ts";
import { TunnelDialError } from "./dial_error.ts";
import {
  openDialer,
  TUNNEL_DIAL_TIMEOUT_MS,
  type TunnelDial,
  type TunnelDialer,
} from "./tunnel_dialer.ts";
import { EARLY_BYTES_MAX } from "../proto/link/link.ts";

const TARGET = { protocol: "tcp", address: "10.0.0.7:443" } as const;
const GRANTED = "HTTP/1.1 200 Connection Established\r\n\r\n";

/** A CONNECT frontend on a unix socket, played by the test. */
class ConnectFrontend implements Disposable {
  readonly path: string;
  readonly #directory = Deno.makeTempDirSync();
  readonly #listener: Deno.Listener;

  constructor() {
    this.path = `${this.#directory}/front.sock`;
    this.#listener = Deno.listen({ transport: "unix", path: this.path });
  }

  dialer(timers?: Timers): TunnelDialer {
    const address = { kind: "unix", path: this.path } as const;
    const route = {
      kind: "tunnel",
      protocol: "http-connect",
      address,
    } as const;
    return openDialer(route, timers);
  }

  /** The next caller, whose request head was read. */
  async asked(): Promise<{ conn: Deno.Conn; request: string }> {
    const conn = await this.#listener.accept();
    const buffer = new Uint8Array(1000);
    let request = "";
    while (!request.includes("\r\n\r\n")) {
      const count = await conn.read(buffer);
      request += new TextDecoder().decode(buffer.subarray(0, count ?? 0));
    }
    return { conn, request };
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    Deno.removeSync(this.#directory, { recursive: true });
  }
}

async function failure(dialing: Promise<unknown>): Promise<TunnelDialError> {
  return await assertRejects(() => dialing, TunnelDialError);
}

Deno.test("a dial through CONNECT is a connection of its own", async () => {
  using frontend = new ConnectFrontend();
  const dialer = frontend.dialer();
  for (const node of ["alpha", "beta"]) {
    const earlyData = new TextEncoder().encode("hello");
    const dialing = dialer.dial({ target: TARGET, node, earlyData });
    const { conn, request } = await frontend.asked();
    assert(request.startsWith("CONNECT 10.0.0.7:443 HTTP/1.1\r\n"));
    assertMatch(
      request,
      new RegExp(
        `\r\ntunnel-node: ${node}\r\n` +
          "tunnel-connection-id: [0-7][0-9a-f]{15}\r\n\r\nhello$",
      ),
    );
    await writeAll(conn, new TextEncoder().encode(`${GRANTED}welcome`));
    await conn.closeWrite();
    const client = new ConduitProbe(await dialing);
    await client.ended;
    assertEquals(client.text, "welcome");
    client.finish();
    assertEquals(await readToEnd(conn), new Uint8Array());
    assertEquals(await client.closed, { kind: "clean" });
    conn.close();
  }
});

Deno.test("a dial through CONNECT that nobody answers ends in time", async () => {
  using frontend = new ConnectFrontend();
  const timers = new FakeTimers();
  const dialing = failure(frontend.dialer(timers).dial({ target: TARGET }));
  const { conn } = await frontend.asked();
  timers.advance(TUNNEL_DIAL_TIMEOUT_MS);
  const error = await dialing;
  assertEquals([error.reason, error.tunnelCode], ["timeout", "TUN421"]);
  assertEquals(
    error.message,
    "the server says nothing: no answer within 30 s (http-connect over " +
      `unix:${frontend.path}); run \`tunnel doctor server\` on its machine`,
  );
  assertEquals(await readToEnd(conn), new Uint8Array(), "it has hung up");
  assertEquals(timers.pendingCount, 0);
  conn.close();
});

Deno.test("a dial through CONNECT that is given up early does not blame the server", async () => {
  using frontend = new ConnectFrontend();
  for (const timeoutMs of [3_000, 10_000]) {
    const timers = new FakeTimers();
    const dialer = frontend.dialer(timers);
    const dialing = failure(dialer.dial({ target: TARGET, timeoutMs }));
    const { conn } = await frontend.asked();
    timers.advance(timeoutMs);
    const error = await dialing;
    assertEquals([error.reason, error.tunnelCode], ["timeout", "TUN502"]);
    assertEquals(
      error.message,
      `no answer within ${timeoutMs / 1_000} s (http-connect over ` +
        `unix:${frontend.path})`,
    );
    conn.close();
  }
});

Deno.test("a dial through CONNECT that was cut off is made once more, unless it has said something", async () => {
  using frontend = new ConnectFrontend();
  const dialer = frontend.dialer();
  for (const earlyData of [undefined, new Uint8Array([7])]) {
    const dialing = dialer.dial({ target: TARGET, earlyData });
    dialing.catch(() => {});
    (await frontend.asked()).conn.close();
    if (earlyData !== undefined) {
      assertEquals((await failure(dialing)).reason, "tunnelclosed");
      continue;
    }
    const { conn } = await frontend.asked();
    await writeAll(conn, new TextEncoder().encode(GRANTED));
    new ConduitProbe(await dialing).reset("over");
    conn.close();
  }
});

Deno.test("a dial that is given up hangs up", async () => {
  using frontend = new ConnectFrontend();
  const abort = new AbortController();
  const dialing = failure(
    frontend.dialer().dial({ target: TARGET, signal: abort.signal }),
  );
  const { conn } = await frontend.asked();
  abort.abort();
  assertEquals((await dialing).reason, "context");
  assertEquals(await readToEnd(conn), new Uint8Array());
  conn.close();
});

Deno.test("a dial that was given up before it began asks nobody", async () => {
  using frontend = new ConnectFrontend();
  const error = await failure(
    frontend.dialer().dial({ target: TARGET, signal: AbortSignal.abort() }),
  );
  assertEquals(error.reason, "context");
});

Deno.test("a refusal is reported in the server's words", async () => {
  using frontend = new ConnectFrontend();
  const dialing = failure(frontend.dialer().dial({ target: TARGET }));
  const { conn } = await frontend.asked();
  const refusal = "HTTP/1.1 503 No\r\n\r\nno agent serves host=alpha\n";
  await writeAll(conn, new TextEncoder().encode(refusal));
  conn.close();
  const error = await dialing;
  assertEquals(error.reason, "endpoint");
  assertEquals(error.message, "no agent serves host=alpha");
  assertMatch(error.connectionId!, /^[0-7][0-9a-f]{15}$/);
});

Deno.test("what cannot be sent as it is, is refused before anything is", async () => {
  const dialer = openDialer({ kind: "direct" });
  const cases: [Partial<TunnelDial>, string][] = [
    [
      { target: { protocol: "tcp", address: "a:1\r\nHost: b" } },
      'Cannot dial "a:1\\r\\nHost: b": wanted visible ASCII only',
    ],
    [
      { node: "n1\r\nX: y" },
      'Cannot dial node "n1\\r\\nX: y": wanted visible ASCII only',
    ],
  ];
  for (const [dial, message] of cases) {
    const error = await failure(dialer.dial({ target: TARGET, ...dial }));
    assertEquals([error.reason, error.message], ["endpoint", message]);
  }
  await assertRejects(
    () => dialer.dial({ target: TARGET, id: "12\r\nX: y" }),
    RangeError,
    'Cannot use "12\\r\\nX: y" as a connection\'s id',
  );
  const earlyData = new Uint8Array(EARLY_BYTES_MAX + 1);
  await assertRejects(
    () => dialer.dial({ target: TARGET, earlyData }),
    RangeError,
    `${EARLY_BYTES_MAX} are allowed`,
  );
});

Deno.test("the direct route connects, and says early bytes first", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${listener.addr.port}`;
  const earlyData = new Uint8Array(EARLY_BYTES_MAX).fill(1);
  const target = { protocol: "tcp", address };
  const dialing = openDialer({ kind: "direct" }).dial({ target, earlyData });
  const accepted = await listener.accept();
  const client = new ConduitProbe(await dialing);
  client.send(new Uint8Array([2]));
  client.finish();
  const received = await readToEnd(accepted);
  assertEquals(received.length, EARLY_BYTES_MAX + 1);
  assertEquals(received.indexOf(2), EARLY_BYTES_MAX);
  accepted.close();
  await client.closed;
});

Deno.test("the direct route's failures are an endpoint's", async () => {
  const unused = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${unused.addr.port}`;
  unused.close();
  const target = { protocol: "tcp", address };
  const error = await failure(openDialer({ kind: "direct" }).dial({ target }));
  assertEquals(error.reason, "endpoint");
  assertEquals(
    error.message,
    `dial tcp ${address}: connect: connection refused`,
  );
});
