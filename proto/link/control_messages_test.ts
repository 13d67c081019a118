import { assertEquals, assertThrows } from "@std/assert";
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
