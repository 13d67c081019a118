/**
 * Programs on a node that are no friends: what they say to the relays of its
 * agent, as browsers, as smugglers and in numbers.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { StatusCode } from "../../proto/grpc/status.ts";
import { TYPE_URLS } from "../../proto/xds/resource.ts";
import {
  STREAMS_MAX,
  STREAMS_PER_PROGRAM_MAX,
} from "../../agent/relay/ads_relay.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import { RelayScene } from "../support/rigs/relay_scene.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import { namesIn } from "../support/xds/xds_probe.ts";

/** All that is answered to bytes, if their sender waits for the end. */
async function received(port: number, text: string): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  await writeAll(conn, bytes).catch(() => {});
  const answer = await readToEnd(conn).catch(() => new Uint8Array(0));
  return new TextDecoder("latin1").decode(answer);
}

/** A well-behaved program gets what it asks for. */
async function assertServes(scene: RelayScene): Promise<void> {
  using probe = await scene.probe();
  // The first view may be of before `edge-1` came.
  await eventually("the service is told", async () => {
    const stream = probe.sotw();
    stream.send({
      node: { id: "honest", userAgentName: "tunnel" },
      typeUrl: TYPE_URLS.cluster,
    });
    const names = namesIn("cluster", await stream.next("cluster"));
    stream.cancel();
    return names.includes("default/web:80");
  });
  const named = "HTTP/1.1\r\ntunnel-node: id=edge-1\r\nx: ";
  const { conn, answer } = await scene.connect(
    `127.0.0.1:${scene.port} ${named}`,
  );
  conn.close();
  assertMatch(answer, /^HTTP\/1\.1 200 /);
}

Deno.test("a page in a browser gets nothing out of a relay, whatever it posts", async () => {
  await using scene = await RelayScene.open();
  const { port, xds, connectPort } = scene;
  const dial = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n` +
    "tunnel-node: id=edge-1\r\n\r\nhello";
  const post = (body: string) =>
    "POST / HTTP/1.1\r\nhost: rebound.example\r\n" +
    `content-length: ${body.length}\r\n\r\n${body}`;
  // Only one answer: what is posted is no second request.
  const answer = await received(connectPort, post(dial));
  assertMatch(answer, /^HTTP\/1\.1 405 /);
  assertEquals(answer.match(/HTTP\/1\.1 /g)?.length, 1);
  assert(!answer.includes("edge-1: "), answer);
  // HTTP/2 begins with the connection's first byte or not at all.
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
  for (const text of [post(preface), "GET / HTTP/1.1\r\n\r\n", "\r\n\r\n"]) {
    const answer = await received(xds, text.padEnd(100));
    assert(!answer.includes("default/web"), answer);
  }
  assertEquals(await scene.streams(), 0);
  await assertServes(scene);
});

Deno.test("heads that two readers might read differently are refused, and no word of them passes", async () => {
  await using scene = await RelayScene.open();
  const { port, connectPort } = scene;
  const target = `127.0.0.1:${port}`;
  const named = "tunnel-node: id=edge-1";
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [head: string, says: RegExp])[] = [
    [`CONNECT ${target} HTTP/1.1\r\n${named}\r\n folded: x`,  /^HTTP\/1\.1 400 /],
    [`CONNECT ${target} HTTP/1.1\r\ntunnel-node : id=edge-1`, /^HTTP\/1\.1 400 /],
    [`CONNECT ${target} HTTP/1.1\r\n: x`,                     /^HTTP\/1\.1 400 /],
    [`CONNECT ${target}  HTTP/1.1`,                           /^HTTP\/1\.1 400 /],
    [`CONNECT x@${target} HTTP/1.1`,                          /^HTTP\/1\.1 400 /],
    [`CONNECT ${target}/ HTTP/1.1`,                           /^HTTP\/1\.1 400 /],
    [`CONNECT ${target} HTTP/1.1\r\ntunnel-node: id=\xe9`,    /^HTTP\/1\.1 (?:4|5)\d\d /],
    [`CONNECT ${target} HTTP/1.1\r\ntunnel-node: id=e\0dge`,  /^HTTP\/1\.1 (?:4|5)\d\d /],
    [`CONNECT ${target} HTTP/1.1\r\ntunnel-node: id=a b`,     /^HTTP\/1\.1 (?:4|5)\d\d /],
    [`CONNECT ${target} HTTP/1.1\r\n${"x: y\r\n".repeat(9_999)}`, /^HTTP\/1\.1 431 /],
  ];
  for (const [head, says] of cases) {
    const answer = await received(connectPort, `${head}\r\n\r\nhello`);
    assertMatch(answer, says, JSON.stringify(head.slice(0, 100)));
    assert(!answer.includes("edge-1: "), answer);
  }
  await assertServes(scene);
});

Deno.test("more streams than a relay has are refused at once, and leave nothing behind", async () => {
  await using scene = await RelayScene.open();
  const programs = await Promise.all(
    Array.from({ length: 40 }, () => scene.probe()),
  );
  const streams = programs.flatMap((program) =>
    Array.from({ length: STREAMS_PER_PROGRAM_MAX }, () => program.sotw())
  );
  const ends: number[] = [];
  for (const { status } of streams) {
    void status.then(({ code }) => ends.push(code));
  }
  const refused = streams.length - STREAMS_MAX;
  await eventually("some are refused", () => ends.length >= refused);
  assertEquals(ends, Array(refused).fill(StatusCode.RESOURCE_EXHAUSTED));
  for (const program of programs) program[Symbol.dispose]();
  await eventually(
    "none is left",
    async () => await scene.streams() === 0,
  );
  await assertServes(scene);
});
