import { assert, assertEquals } from "@std/assert";
import { DialError } from "../../proto/peer/dial_error.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import {
  ConduitProbe,
  settled,
} from "../../tests/support/memory/conduit_probe.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { type ConnectOptions, dialConnect } from "./connect_client.ts";

const GRANTED = "HTTP/1.1 200 Connection Established\r\n\r\n";

/** A dial under way and the server's end of its connection. */
function dial(
  options: ConnectOptions = {},
  cut?: (bytes: number) => number,
) {
  const [ours, theirs] = MemoryConduit.pair(cut === undefined ? {} : { cut });
  const outcomes: (Conduit | DialError)[] = [];
  const pending = dialConnect(ours, "10.0.0.7:443", {
    onConnected: (conduit) => outcomes.push(conduit),
    onFailed: (error) => outcomes.push(error),
  }, options);
  const server = new ConduitProbe(theirs);
  return { ours, server, outcomes, pending };
}

function conduitOf(outcomes: readonly unknown[]): Conduit {
  assertEquals(outcomes.length, 1);
  assert(!(outcomes[0] instanceof DialError));
  return outcomes[0] as Conduit;
}

Deno.test("it asks in kube-apiserver's words", async () => {
  const { server } = dial();
  await settled();
  assertEquals(
    server.text,
    "CONNECT 10.0.0.7:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
  );
});

Deno.test("a node and early bytes go with the request", async () => {
  const earlyData = new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n");
  const { server } = dial({ node: "alpha", earlyData });
  await settled();
  assertEquals(
    server.text,
    "CONNECT 10.0.0.7:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
      "tunnel-node: alpha\r\n\r\nGET / HTTP/1.0\r\n\r\n",
  );
});

Deno.test("a granted connection is a conduit both ways", async () => {
  const { server, outcomes, ours } = dial();
  await server.send(GRANTED);
  const client = new ConduitProbe(conduitOf(outcomes));
  const before = server.receivedBytes;
  client.send("question");
  client.finish();
  await server.ended;
  assertEquals(server.text.slice(before), "question");
  server.send("answer");
  server.finish();
  assertEquals(await client.closed, { kind: "clean" });
  assertEquals(client.text, "answer");
  assertEquals(ours.unconsumedBytes, 0);
});

Deno.test("bytes behind the 200 wait for whoever listens, cut anyhow", async () => {
  await forAll(50, async (random) => {
    const { server, outcomes, ours } = dial(
      {},
      (bytes) => 1 + random.below(bytes),
    );
    server.send(GRANTED + "banner");
    await server.finish();
    const conduit = conduitOf(outcomes);
    const client = new ConduitProbe(conduit);
    assertEquals(client.text, "", "nothing is told inside attach()");
    await client.ended;
    assertEquals(client.text, "banner");
    assertEquals(ours.unconsumedBytes, 0);
    client.finish();
    assertEquals(await client.closed, { kind: "clean" });
  });
});

Deno.test("what nobody listens to is not consumed", async () => {
  const { server, outcomes, ours } = dial();
  await server.send(GRANTED + "banner");
  assertEquals(outcomes.length, 1);
  assertEquals(ours.unconsumedBytes, "banner".length);
});

Deno.test("a reset before anybody listens is reported later", async () => {
  const { server, outcomes } = dial();
  await server.send(GRANTED);
  server.reset("gone");
  const client = new ConduitProbe(conduitOf(outcomes));
  assertEquals(await client.closed, { kind: "reset", reason: "gone" });
});

Deno.test("a loss of an open connection is a loss", async () => {
  const { server, outcomes, ours } = dial();
  await server.send(GRANTED);
  const client = new ConduitProbe(conduitOf(outcomes));
  await settled();
  ours.lose("cable cut");
  assertEquals(await client.closed, { kind: "lost", reason: "cable cut" });
});

Deno.test("a refusal is reported with the server's sentence, once", async () => {
  const cases: [string, DialError["reason"], string][] = [
    ["502 No\r\n\r\nconnection refused", "endpoint", "connection refused"],
    ["504 No\r\n\r\ntoo late", "timeout", "too late"],
    ["503 No\r\nContent-Length: 8\r\n\r\nno agent", "no-agent", "no agent"],
    ["403 No\r\n\r\nno rule", "refused", "no rule"],
  ];
  for (const [answer, reason, message] of cases) {
    await forAll(10, async (random) => {
      const { server, outcomes, ours } = dial(
        {},
        (bytes) => 1 + random.below(bytes),
      );
      server.send(`HTTP/1.1 ${answer}`);
      await server.finish();
      const [error] = outcomes;
      assert(error instanceof DialError);
      assertEquals([error.reason, error.message], [reason, message]);
      assertEquals(outcomes.length, 1);
      assert(ours.closed !== undefined, "the connection was given back");
    });
  }
});

Deno.test("a refusal with a length does not wait for the end", async () => {
  const { server, outcomes } = dial();
  await server.send("HTTP/1.1 503 No\r\nContent-Length: 8\r\n\r\nno agent");
  assert(outcomes[0] instanceof DialError);
  assertEquals((await server.closed).kind, "reset");
});

Deno.test("a server that goes without an answer is a broken path", async () => {
  const ways: [string, (rig: ReturnType<typeof dial>) => void, string][] = [
    [
      "",
      ({ server }) => server.finish(),
      "the server answered nothing, and closed the connection",
    ],
    [
      "HTTP/1.1 200 OK\r\n",
      ({ server }) => server.finish(),
      "the server answered nothing, and closed the connection",
    ],
    [
      "",
      ({ server }) => server.reset("RST"),
      "the connection to the server broke: RST",
    ],
    [
      "",
      ({ ours }) => ours.lose("cable cut"),
      "the connection to the server broke: cable cut",
    ],
    [
      "SSH-2.0\r\n\r\n",
      () => {},
      'the server answered "SSH-2.0", which is no HTTP/1.1',
    ],
  ];
  for (const [said, leave, message] of ways) {
    const rig = dial();
    if (said !== "") rig.server.send(said);
    await settled();
    leave(rig);
    await settled();
    const [error] = rig.outcomes;
    assert(error instanceof DialError, message);
    assertEquals([error.reason, error.message], ["link-lost", message]);
    assertEquals(rig.outcomes.length, 1);
  }
});

Deno.test("a refusal that the connection's end cuts off is reported as far as it came", async () => {
  const { server, outcomes, ours } = dial();
  await server.send(
    "HTTP/1.1 502 No\r\nContent-Length: 100\r\n\r\nconnection re",
  );
  ours.lose("cable cut");
  assert(outcomes[0] instanceof DialError);
  assertEquals(outcomes[0].message, "connection re");
});

Deno.test("a dial that was given up notifies nobody and frees the connection", async () => {
  const { server, outcomes, pending } = dial();
  pending.cancel();
  assertEquals((await server.closed).kind, "reset");
  assertEquals(outcomes, []);
});

Deno.test("giving up what was granted changes nothing", async () => {
  const { server, outcomes, pending } = dial();
  await server.send(GRANTED);
  pending.cancel();
  const client = new ConduitProbe(conduitOf(outcomes));
  server.send("still here");
  await client.received(10);
  assertEquals(client.end, undefined);
});
