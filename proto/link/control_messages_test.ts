import { assert, assertEquals, assertThrows } from "@std/assert";
import protobuf from "protobufjs";
import {
  type AgentEvent,
  ControlError,
  decodeAgentEvent,
  decodeServerEvent,
  encodeAgentEvent,
  encodeServerEvent,
  type ServerEvent,
} from "./control_messages.ts";
import type { AnnouncedService } from "./link_messages.ts";
import { versionProblem } from "./hello.ts";
import {
  formatServers,
  parseServers,
  SERVER_LIST_MAX,
} from "./capabilities.ts";
import {
  enginePair,
  openLogged,
} from "../../tests/support/memory/engine_pair.ts";
import { ErrorCode } from "../frames/wire_error.ts";
import { LINK_CONDUITS_MAX, LINK_LIMITS } from "./link_limits.ts";
import { forAll } from "../../tests/support/memory/prng.ts";
import { decodePacket, encodePacket } from "../packets/packet_codec.ts";
import { connectionIdOf, dialIdOf, randomDialId } from "./dial_handler.ts";

const SERVER_EVENTS: readonly Exclude<ServerEvent, { type: "unknown" }>[] = [
  {
    type: "hello",
    hello: {
      version: 1,
      software: "tunnel/0.1.0",
      serverId: "s1",
      serverCount: 3,
      capabilities: ["half-close", "datagram"],
      instanceId: "7f3c",
    },
  },
  { type: "drain" },
  { type: "drain", spreadMs: 20_000 },
  { type: "reconnect", reason: "stream ids run out", delayMs: 250 },
  {
    type: "peer-addresses",
    servers: [
      { serverId: "b", instanceId: "12345678", address: "10.0.0.1:8091" },
      { serverId: "c", instanceId: "", address: "[::1]:8091" },
    ],
    serverCount: 3,
  },
  { type: "ca-bundle", pem: Uint8Array.of(0, 255, 10) },
  { type: "announced-services", names: ["dns"] },
  { type: "admission" },
  { type: "refusal", reason: "the certificate expired, ü", code: "TUN311" },
  {
    type: "service-refusals",
    refused: [{ service: "shop/web:80", reason: "it is not yours" }],
  },
  { type: "duplicate-identity", message: "this node is linked twice" },
];

const WEB: AnnouncedService = {
  name: "web",
  namespace: "shop",
  port: 80,
  protocol: "tcp",
  appProtocol: "http",
  host: "127.0.0.1",
  targetPort: 8080,
};

const AGENT_EVENTS: readonly Exclude<AgentEvent, { type: "unknown" }>[] = [
  {
    type: "hello",
    hello: {
      version: 1,
      software: "tunnel/0.1.0",
      agentId: "a1",
      identifiers: "host=node1",
      token: "",
      capabilities: [],
      linkIndex: 0,
      services: [WEB],
      instanceId: "00ff00ff00ff00ff",
    },
  },
  { type: "drain" },
  { type: "services", services: [WEB, { ...WEB, name: "dns", port: 53 }] },
  { type: "services", services: [] },
  { type: "trust", authorities: ["00ff00ff00ff00ff"] },
];

Deno.test("every event survives the way over", () => {
  for (const event of SERVER_EVENTS) {
    assertEquals(decodeServerEvent(encodeServerEvent(event)), event);
  }
  for (const event of AGENT_EVENTS) {
    assertEquals(decodeAgentEvent(encodeAgentEvent(event)), event);
  }
});

Deno.test("events and fields from the future are ignored", () => {
  // Field 99, length-delimited, empty.
  const future = Uint8Array.of(0x9a, 0x06, 0x00);
  assertEquals(decodeServerEvent(future), { type: "unknown" });
  assertEquals(decodeAgentEvent(future), { type: "unknown" });
  const drain = encodeServerEvent({ type: "drain" });
  assertEquals(
    decodeServerEvent(Uint8Array.of(...drain, ...future)),
    { type: "drain" },
  );
  assertEquals(decodeServerEvent(new Uint8Array(0)), { type: "unknown" });
});

Deno.test("bytes that are no message are the peer's fault", () => {
  for (const bytes of [[0x0a, 0x05], [0xff], [0x0a, 0x02, 0x12, 0x09]]) {
    assertThrows(
      () => decodeServerEvent(Uint8Array.from(bytes)),
      ControlError,
    );
    assertThrows(() => decodeAgentEvent(Uint8Array.from(bytes)), ControlError);
  }
});

/** As a version before knew it: nobody announced services or instances. */
async function schemaBefore(): Promise<protobuf.Root> {
  const text = await Deno.readTextFile(new URL("link.proto", import.meta.url));
  const { root } = protobuf.parse(text);
  const forget = (name: string, field: string) => {
    const type = root.lookupType(`tunnel.v1.${name}`);
    type.remove(type.fields[field]!);
  };
  forget("AgentHello", "services");
  forget("AgentHello", "instanceId");
  forget("FromServer", "duplicateIdentity");
  forget("FromAgent", "services");
  forget("FromServer", "serviceRefusals");
  return root;
}

Deno.test("what is new is unknown to a version before, and harms nobody", async () => {
  const before = await schemaBefore();
  const fromAgent = before.lookupType("tunnel.v1.FromAgent");
  const fromServer = before.lookupType("tunnel.v1.FromServer");
  const [hello] = AGENT_EVENTS;
  const read = fromAgent.toObject(fromAgent.decode(encodeAgentEvent(hello!)));
  assertEquals(Object.keys(read), ["hello"]);
  assertEquals(read.hello.agentId, "a1");
  assertEquals("services" in read.hello, false);
  assertEquals("instanceId" in read.hello, false);
  const services = encodeAgentEvent({ type: "services", services: [WEB] });
  assertEquals(fromAgent.toObject(fromAgent.decode(services)), {});
  const refusals = encodeServerEvent({
    type: "service-refusals",
    refused: [{ service: "web:80", reason: "not yours" }],
  });
  assertEquals(fromServer.toObject(fromServer.decode(refusals)), {});
  const duplicate = encodeServerEvent({
    type: "duplicate-identity",
    message: "twice",
  });
  assertEquals(fromServer.toObject(fromServer.decode(duplicate)), {});
  const old = fromAgent.encode(fromAgent.fromObject({
    hello: { version: 1, agentId: "a1", identifiers: "host=node1" },
  })).finish();
  const received = decodeAgentEvent(old);
  assertEquals(received.type === "hello" && received.hello.services, []);
  assertEquals(received.type === "hello" && received.hello.instanceId, "");
});

Deno.test("versions N and N−1 work together, whichever end is newer", () => {
  for (let ours = 1; ours <= 4; ours++) {
    for (let theirs = 0; theirs <= 6; theirs++) {
      const works = theirs >= 1 && Math.abs(ours - theirs) <= 1;
      const problem = versionProblem(theirs, "server", ours);
      assertEquals(problem === undefined, works, `${ours} with ${theirs}`);
      if (theirs > 0) {
        const seen = versionProblem(ours, "agent", theirs) === undefined;
        assertEquals(seen, works, "both ends come to the same decision");
      }
    }
  }
});

Deno.test("a version refused is named, as is ours", () => {
  const problem = versionProblem(9, "agent", 4)!;
  assert(problem.includes("the agent speaks link version 9"));
  assert(problem.includes("this end speaks version 4"));
});

const SERVERS = [
  { serverId: "s1", instanceId: "aaaaaaaa", address: "[fd00::7]:8091" },
  { serverId: "a, b c\n", instanceId: "", address: "b.example:1" },
];

Deno.test("servers are read as they were written, whatever their ids", () => {
  const text = formatServers(SERVERS);
  assert(/^[\x20-\x7e]+$/.test(text), text);
  assertEquals(parseServers(text), SERVERS);
  assertEquals(parseServers(formatServers([])), []);
});

Deno.test("a list is never longer than a field may be", () => {
  const many = Array.from({ length: 1_000 }, () => SERVERS[0]!);
  const text = formatServers(many);
  assert(text.length <= SERVER_LIST_MAX);
  assert(parseServers(text).length > 50);
});

Deno.test("what is no list of servers is none", () => {
  for (
    const text of [undefined, "", ",", "a", "a b", "a b c d", "%zz b c", "  "]
  ) assertEquals(parseServers(text), [], text);
  assertEquals(parseServers("x".repeat(SERVER_LIST_MAX + 1)), []);
});

Deno.test("a server may give up thousands of dials at once, crossing their answers", () => {
  const settings = { maxConcurrentStreams: LINK_CONDUITS_MAX };
  const limits = LINK_LIMITS;
  const { client, server, pipe } = enginePair({
    client: { limits },
    server: { settings, limits },
  });
  const logs = Array.from({ length: 20_000 }, () => {
    return openLogged(client.connection);
  });
  pipe.settle();
  for (const { stream } of server.accepted.slice(0, 10_000)) {
    stream!.sendHeaders([{ name: ":status", value: "200" }], false);
  }
  for (const { stream } of logs) stream!.reset(ErrorCode.CANCEL);
  pipe.settle();
  assertEquals([client.ends, server.ends], [[], []]);
  assertEquals(server.connection.openStreams, 0);
});

Deno.test("dial ids are in [0, 2^63) and survive the wire to the bit", async () => {
  await forAll(200, (prng) => {
    const random = randomDialId((bytes) => bytes.set(prng.bytes(8)));
    assert(random >= 0 && BigInt(random) < 2n ** 63n);
    const packet = decodePacket(encodePacket({ type: "DIAL_CLS", random }));
    assertEquals(packet, { type: "DIAL_CLS", random });
  });
});

Deno.test("a dial id has one representation, so that it can be a key", () => {
  assertEquals(randomDialId((bytes) => bytes.fill(0)), 0);
  assertEquals(randomDialId((bytes) => bytes.fill(255)), 2n ** 63n - 1n);
  assertEquals(
    randomDialId((bytes) => {
      bytes.fill(255);
      bytes.set([0, 63]);
    }),
    Number.MAX_SAFE_INTEGER,
  );
});

Deno.test("a connection id is the same number in digits", async () => {
  await forAll(200, (prng) => {
    const id = prng.bytes(8).toHex();
    const random = dialIdOf(id);
    const packet = decodePacket(encodePacket({ type: "DIAL_CLS", random }));
    assertEquals(packet, { type: "DIAL_CLS", random });
    if (!id.startsWith("00000000")) assertEquals(connectionIdOf(random), id);
  });
  assertEquals(dialIdOf("ffffffffffffffff"), -1);
  assertEquals(connectionIdOf(-1), "ffffffffffffffff");
  // As the SPEC shows it.
  assertEquals(connectionIdOf(5577006791947779410n), "4d65822107fcfd52");
});

Deno.test("a count is no connection id", () => {
  for (const count of [0, 1, 2 ** 32 - 1]) {
    assertEquals(connectionIdOf(count), undefined);
  }
  assertEquals(connectionIdOf(2 ** 32), "0000000100000000");
});
