import { assert, assertEquals, assertThrows } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { Prng } from "../../../tests/support/memory/prng.ts";
import { rawSsl } from "../../../tests/support/peers/raw_ssl.ts";
import {
  clientContext,
  LIBSSL,
  type SecurePair,
  securePair,
  serverContext,
} from "../../../tests/support/memory/secure_pair.ts";
import { MESSAGES_MAX, WANT_READ, WANT_WRITE } from "./secure_session.ts";
import { CLEAR_BYTES_MAX } from "./session_memory.ts";
import { SslError } from "../trust/ssl_error.ts";

const all = await certificates();
const server = { material: { ...all.server, ca: all.ca } };
const client = { material: { cert: "", key: "", ca: all.ca } };
const bytes = new Uint8Array(new Prng(3).bytes(3 * CLEAR_BYTES_MAX));
const into = new Uint8Array(20_000);

/** What a record of TLS 1.3 has around its bytes. */
const RECORD_BYTES = 5 + 1 + 16;

const VERSIONS = [["TLS 1.3", 0x304], ["TLS 1.2", 0x303]] as const;

function sslTest(name: string, fn: () => void): void {
  Deno.test({ name, ignore: LIBSSL === undefined, fn });
}

/** A test of a connected pair. */
function test(name: string, use: (pair: SecurePair) => void): void {
  sslTest(name, () => {
    using pair = securePair({ client, server }).connect();
    use(pair);
    assertEquals(LIBSSL!.ERR_peek_last_error(), 0n, "nothing is left behind");
  });
}

/** A client that can do what no client of ours does. */
function rawTest(
  name: string,
  use: (raw: ReturnType<typeof rawSsl>, pair: SecurePair) => void,
): void {
  sslTest(name, () => {
    const raw = rawSsl();
    using pair = raw.pair(
      clientContext(client, raw.library),
      serverContext(server),
    ).connect();
    use(raw, pair);
  });
}

for (const [name, number] of VERSIONS) {
  sslTest(`bytes arrive in order however they are cut, ${name}`, () => {
    const raw = rawSsl();
    const limited = clientContext(client, raw.library);
    raw.limitVersion(limited, number);
    using pair = raw.pair(limited, serverContext(server)).connect();
    for (
      const [from, to] of [
        [pair.client, pair.server],
        [pair.server, pair.client],
      ] as const
    ) {
      for (const step of [1_234, 16_384, 65_536, Infinity]) {
        for (let at = 0; at < bytes.length;) {
          const rest = bytes.subarray(at);
          const taken = from.session.write(rest);
          assertEquals(taken, Math.min(rest.length, CLEAR_BYTES_MAX));
          assertEquals(to.receive(from, step), rest.slice(0, taken));
          at += taken;
        }
      }
      // One byte of the network at a time, which moves the rings' ends along.
      from.session.write(bytes.subarray(0, 3_000));
      assertEquals(to.receive(from, 1), bytes.slice(0, 3_000));
    }
  });
}

test("the ring of the output is read where it stands, in any pieces", ({ client, server }) => {
  const prng = Prng.fromEnvironment();
  for (let round = 0; round < 40; round++) {
    const length = 1 + prng.below(CLEAR_BYTES_MAX);
    client.session.write(bytes.subarray(0, length));
    const whole = client.session.output.slice();
    let seen = 0;
    for (;;) {
      const { output } = client.session;
      if (output.length === 0) break;
      assertEquals(output[0], whole[seen], `seed ${prng.seed}`);
      seen += server.takeFrom(client, 1 + prng.below(20_000));
      assert(server.readAll().length <= length);
    }
    assertEquals(seen, whole.length);
  }
});

test("a read gives no more than there is room for, and keeps the rest", ({ client, server }) => {
  client.session.write(bytes.subarray(0, 100));
  assertEquals(server.read(into), WANT_READ);
  server.takeFrom(client);
  for (let at = 0; at < 100; at += 7) {
    const count = server.read(into.subarray(0, 7));
    assertEquals(into.slice(0, count), bytes.slice(at, Math.min(at + 7, 100)));
  }
  assertEquals(server.read(into), WANT_READ);
});

test("either side says goodbye, and the other one goes on", ({ client, server }) => {
  client.session.write(bytes.subarray(0, 5));
  assertEquals(client.session.end(), true);
  assertEquals(server.receive(client), bytes.slice(0, 5));
  assertEquals(server.read(into), 0);
  assertEquals(server.read(into), 0, "as often as it is asked");
  server.session.write(bytes.subarray(0, 70_000));
  assertEquals(client.receive(server).length, CLEAR_BYTES_MAX);
  assertEquals(client.read(into), WANT_READ);
  server.session.end();
  client.receive(server);
  assertEquals(client.read(into), 0);
  assertThrows(() => client.session.write(bytes), SslError);
});

test("what fails once fails for good, with the same error", ({ client, server }) => {
  client.session.write(bytes.subarray(0, 50));
  const record = client.drain();
  record[20]! ^= 1;
  assertEquals(server.read(into), WANT_READ);
  server.put(record);
  const error = assertThrows(() => server.read(into), SslError);
  assertEquals(error.code, "ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC");
  assert(server.session.output.length > 0, "the peer is told");
  for (
    const again of [
      () => server.read(into),
      () => server.session.write(bytes),
      () => server.session.end(),
      () => server.session.doHandshake(),
    ]
  ) assertEquals(assertThrows(again, SslError), error);
  assertEquals(client.read(into), WANT_READ);
  const reported = assertThrows(() => client.receive(server), SslError);
  assertEquals(reported.code, "ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC");
});

test("a session that was freed is used no more, and freed once", ({ client, server }) => {
  const { session } = server;
  session.free();
  session.free();
  for (
    const use of [
      () => session.input,
      () => session.output,
      () => session.received(1),
      () => session.sent(1),
      () => session.doHandshake(),
      () => session.read(into),
      () => session.write(bytes),
      () => session.end(),
      () => session.alpn,
      () => session.serverName,
      () => session.peerCertificate,
    ]
  ) assertThrows(use, TypeError, "Cannot use a TLS session that was freed");
  assertEquals(session.refusedCertificate, undefined);
  // The other one knows nothing of it.
  assertEquals(client.session.write(bytes), CLEAR_BYTES_MAX);
});

test("bytes before the handshake are an error, and none are lost", () => {
  using pair = securePair({ client, server });
  assertEquals(pair.client.session.write(bytes.subarray(0, 5)), WANT_READ);
  pair.connect();
  assertEquals(pair.client.session.write(bytes.subarray(0, 5)), 5);
  assertEquals(pair.server.receive(pair.client), bytes.slice(0, 5));
});

test("a peer that takes nothing makes the writer wait, and nothing is lost", ({ client, server }) => {
  // More than one write is for who has sent the output of the first.
  let taken = client.session.write(bytes);
  let rest = bytes.subarray(taken);
  const before = client.session.write(rest);
  assertEquals(before, WANT_WRITE);
  assertEquals(server.read(into), WANT_READ);
  const seen = [server.receive(client)];
  // It may have been copied meanwhile.
  rest = rest.slice();
  taken = client.session.write(rest);
  assertEquals(taken, CLEAR_BYTES_MAX);
  seen.push(server.receive(client));
  const whole = new Uint8Array(seen.flatMap((part) => [...part]));
  assertEquals(whole, bytes.slice(0, 2 * CLEAR_BYTES_MAX));
});

sslTest("who writes on and on takes new keys, and nobody asked", () => {
  using pair = securePair({ client, server, recordsPerKey: 8 }).connect();
  const whole = bytes.subarray(0, CLEAR_BYTES_MAX); // Four records.
  const lengths: number[] = [];
  for (let round = 0; round < 7; round++) {
    pair.client.session.write(whole);
    lengths.push(pair.client.session.output.length);
    assertEquals(pair.server.receive(pair.client), whole.slice());
  }
  const plain = CLEAR_BYTES_MAX + 4 * RECORD_BYTES;
  // New keys are 5 bytes of a handshake in a record of their own.
  const renewed = plain + 5 + RECORD_BYTES;
  const wanted = [plain, plain, renewed, plain, renewed, plain, renewed];
  assertEquals(lengths, wanted);
  assertEquals(pair.server.session.output.length, 0);
});

rawTest("new keys are answered with new keys", (raw, pair) => {
  for (let round = 0; round < MESSAGES_MAX.burst; round++) {
    raw.updateKeys(pair.client.session);
    pair.client.session.write(bytes.subarray(0, 100));
    assertEquals(pair.server.receive(pair.client), bytes.slice(0, 100));
    pair.server.session.write(bytes.subarray(0, 200));
    const { length } = pair.server.session.output;
    assert(length > 200 + RECORD_BYTES + 20, "its own new keys come first");
    assertEquals(pair.client.receive(pair.server), bytes.slice(0, 200));
  }
});

rawTest(
  "who asks for new keys and takes none makes nobody fail",
  (raw, pair) => {
    const { session } = pair.server;
    // So that what is left of the ring holds no goodbye behind the last answer.
    session.write(bytes.subarray(0, CLEAR_BYTES_MAX - 5));
    assertEquals(pair.server.read(into), WANT_READ);
    let outcome = WANT_READ;
    for (let asked = 0; outcome === WANT_READ; asked++) {
      assert(asked < 1_000, "the ring is never full");
      raw.updateKeys(pair.client.session);
      pair.client.session.write(bytes.subarray(0, 1));
      pair.server.takeFrom(pair.client);
      do outcome = pair.server.read(into); while (outcome > 0);
    }
    assertEquals(outcome, WANT_WRITE);
    assertEquals(session.end(), false, "no room for a goodbye either");
    pair.client.receive(pair.server);
    assertEquals(pair.server.read(into), 1);
    assertEquals(session.end(), true);
    assertEquals(pair.client.read(into), WANT_READ);
    pair.client.receive(pair.server);
    assertEquals(pair.client.read(into), 0);
  },
);

sslTest(
  "half a ticket keeps nobody from writing when the rest is there",
  () => {
    const raw = rawSsl();
    const giving = serverContext({
      material: { ...all.server, ca: all.ca },
      role: { kind: "server", clientCertificate: "required" },
    }, raw.library);
    raw.giveTickets(giving, 1);
    raw.fragment(giving, 512);
    const material = { ...all.client, ca: all.ca };
    using pair = raw.pair(clientContext({ material }, raw.library), giving);
    pair.connect();
    const ticket = pair.server.drain();
    assert(ticket.length > 600, "more than one record");
    assertEquals(pair.client.read(into), WANT_READ);
    pair.client.put(ticket.slice(0, 600));
    assertEquals(pair.client.read(into), WANT_READ);
    assertEquals(pair.client.session.write(bytes.subarray(0, 9)), WANT_READ);
    pair.client.put(ticket.slice(600));
    assertEquals(pair.client.session.write(bytes.slice(0, 9)), 9);
    assertEquals(pair.server.receive(pair.client), bytes.slice(0, 9));
  },
);

for (const who of ["client", "server"] as const) {
  sslTest(
    `a ${who} that would shake hands again is refused, and goes on`,
    () => {
      const raw = rawSsl();
      const old = clientContext(client, raw.library);
      const strict = serverContext(server, raw.library);
      raw.limitVersion(old, 0x303);
      raw.mayRenegotiate(who === "client" ? old : strict);
      using pair = raw.pair(old, strict).connect();
      const [asking, asked] = who === "client"
        ? [pair.client, pair.server]
        : [pair.server, pair.client];
      raw.renegotiate(asking.session);
      assertEquals(asking.session.write(bytes.subarray(0, 1)) <= 1, true);
      assert(asking.session.output.length > 0, "it asks");
      assertEquals(asked.read(into), WANT_READ);
      asked.receive(asking);
      assert(asked.session.output.length > 0, "it hears no");
      assertEquals(asked.session.write(bytes.subarray(0, 10)), 10);
    },
  );
}

rawTest("who wants new keys again and again is given up soon", (raw, pair) => {
  assertEquals(pair.server.read(into), WANT_READ);
  for (let count = 0; count < 500; count++) {
    raw.updateKeys(pair.client.session);
    pair.client.session.doHandshake();
  }
  pair.server.takeFrom(pair.client);
  const error = assertThrows(() => pair.server.read(into), SslError);
  assertEquals(error.code, "ERR_TLS_TOO_MANY_MESSAGES");
  assertEquals(assertThrows(() => pair.server.read(into)), error);
});
