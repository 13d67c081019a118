import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { REST, settled } from "../../tests/support/memory/conduit_probe.ts";
import { ConnectionPair } from "../../tests/support/memory/connection_pair.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { ScriptedCaller } from "../../tests/support/watch/packet_script.ts";
import { ANONYMOUS } from "../peer/peer_identity.ts";
import type { MethodHandler, ServerCall } from "../grpc/call.ts";
import { startCall } from "../grpc/client.ts";
import { StatusCode } from "../grpc/status.ts";
import {
  decodeServerEvent,
  encodeAgentEvent,
  encodeServerEvent,
} from "./control_messages.ts";
import {
  type AgentHello,
  type AnnouncedService,
  LINK_METHODS,
  type ServerHello,
} from "./link_messages.ts";
import { HELLO_DEADLINE_MS, LinkError } from "./hello.ts";
import type { AgentLink } from "./link.ts";
import { type AgentControl, serveStreamsAgent } from "./streams_agent.ts";
import {
  CLOSE_GRACE_MS,
  openStreamsServer,
  type StreamsServerLink,
  type StreamsServerOptions,
} from "./streams_server.ts";
import { PROXY_PATH } from "./capabilities.ts";

const SERVER: ServerHello = {
  version: 1,
  software: "tunnel/test",
  serverId: "server-1",
  serverCount: 2,
  capabilities: [],
  instanceId: "7f3c",
};

const AGENT: AgentHello = {
  version: 1,
  software: "tunnel/test",
  agentId: "agent-1",
  identifiers: "",
  token: "secret",
  capabilities: [],
  linkIndex: 0,
  services: [],
  instanceId: "",
};

/** Our server and an agent that says what it is told. */
class ScriptedAgent {
  readonly timers = new FakeTimers();
  readonly pair: ConnectionPair;
  readonly received: string[] = [];
  readonly ended: string[] = [];
  call!: ServerCall;

  constructor() {
    const control: MethodHandler = (call) => {
      this.call = call;
      return {
        onBody: (chunk) => {
          // Control messages are small: each comes in one piece.
          for (let at = 0; at < chunk.length;) {
            const bytes = chunk[at + 3]! * 256 + chunk[at + 4]!;
            const event = chunk.subarray(at + 5, at + 5 + bytes);
            this.received.push(describe(decodeServerEvent(event)));
            at += 5 + bytes;
          }
        },
        onHalfClose() {},
        onWritable() {},
        onCancel() {},
      };
    };
    this.pair = new ConnectionPair({
      clock: this.timers,
      methods: { [LINK_METHODS.control]: control },
      onClosed: (role) => this.ended.push(role),
    });
  }

  open(
    options: Partial<StreamsServerOptions> = {},
  ): Promise<StreamsServerLink> {
    return openStreamsServer(this.pair.client, {
      hello: SERVER,
      timers: this.timers,
      remoteAddress: "10.0.0.7:1",
      identity: ANONYMOUS,
      ...options,
    });
  }

  hello(hello: Partial<AgentHello> = {}): PromiseLike<void> {
    return this.say({ type: "hello", hello: { ...AGENT, ...hello } });
  }

  say(event: Parameters<typeof encodeAgentEvent>[0]): PromiseLike<void> {
    this.call.sendMessage(encodeAgentEvent(event));
    return REST;
  }
}

function describe(event: ReturnType<typeof decodeServerEvent>): string {
  return event.type === "refusal" ? `refusal: ${event.reason}` : event.type;
}

async function refusal(
  provoke: (agent: ScriptedAgent) => void,
  options: Partial<StreamsServerOptions> = {},
): Promise<{ agent: ScriptedAgent; message: string }> {
  const agent = new ScriptedAgent();
  const link = assertRejects(() => agent.open(options), LinkError);
  await settled();
  provoke(agent);
  const { message } = await link;
  await settled();
  assertEquals(agent.received, ["hello", `refusal: ${message}`]);
  return { agent, message };
}

Deno.test("a link stands when both hellos were said", async () => {
  const agent = new ScriptedAgent();
  const opening = agent.open();
  await settled();
  assertEquals(agent.received, ["hello"]);
  agent.hello({ identifiers: "host=A" });
  const link = await opening;
  assertEquals(link.peer.identifiers.host, ["a"]);
  assertEquals(agent.timers.pendingCount, 0);
});

Deno.test("an agent is told whom to trust, once it is admitted and later", async () => {
  const agent = new ScriptedAgent();
  const opening = agent.open();
  await settled();
  agent.hello();
  const link = await opening;
  link.announceAuthorities(new Uint8Array(200));
  link.announceAuthorities(new Uint8Array(100));
  await settled();
  assertEquals(agent.received, [
    "hello",
    "admission",
    "ca-bundle",
    "ca-bundle",
  ]);
});

const WEB: AnnouncedService = {
  name: "web",
  namespace: "",
  port: 80,
  protocol: "tcp",
  appProtocol: "",
  host: "127.0.0.1",
  targetPort: 8080,
};

Deno.test("what an agent announces is there when its link stands, and changes with it", async () => {
  const agent = new ScriptedAgent();
  const received: (number | "drain")[] = [];
  const opening = agent.open({
    onChanged: ({ isDraining, services }) =>
      received.push(isDraining ? "drain" : services!.length),
  });
  await settled();
  agent.hello({ services: [WEB] });
  const link = await opening;
  assertEquals(link.services, [WEB]);
  agent.say({ type: "services", services: [WEB, { ...WEB, port: 81 }] });
  agent.say({ type: "services", services: [] });
  await agent.say({ type: "drain" });
  assertEquals(received, [2, 0, "drain"]);
  link.refuseServices([{ service: "web:80", reason: "it is not yours" }]);
  await settled();
  assertEquals(agent.received, ["hello", "admission", "service-refusals"]);
});

Deno.test("an agent of the version before announces nothing", async () => {
  const agent = new ScriptedAgent();
  const opening = agent.open();
  await settled();
  agent.hello();
  assertEquals((await opening).services, []);
});

Deno.test("an agent that says no hello is given up after 10 s", async () => {
  const { message } = await refusal(({ timers }) =>
    timers.advance(HELLO_DEADLINE_MS)
  );
  assertEquals(message, "the agent said no hello within 10 s");
});

Deno.test("an agent of another age is refused with both versions", async () => {
  const { message } = await refusal((agent) => agent.hello({ version: 7 }));
  assert(message.includes("version 7") && message.includes("version 1"));
});

Deno.test("an agent without an id, or with bad identifiers, is refused", async () => {
  await refusal((agent) => agent.hello({ agentId: "" }));
  await refusal((agent) => agent.hello({ identifiers: "host=%zz" }));
});

Deno.test("an agent's id has an end, and so has what is known of its software", async () => {
  const { message } = await refusal((agent) =>
    agent.hello({ agentId: "a".repeat(1_025) })
  );
  assertMatch(message, /id has 1025 characters, at most 1024 are allowed/);
  const agent = new ScriptedAgent();
  const opening = agent.open();
  await settled();
  agent.hello({ agentId: "a".repeat(1_024), software: "s".repeat(100_000) });
  const { peer } = await opening;
  assertEquals([peer.agentId.length, peer.software.length], [1_024, 253]);
});

Deno.test("bytes that are no control message end the link", async () => {
  await refusal((agent) => agent.call.sendMessage(Uint8Array.of(0xff)));
});

Deno.test("an agent that is not admitted receives the reason, at once or later", async () => {
  const no = "this node is not allowed here";
  const denied = { code: StatusCode.PERMISSION_DENIED, message: no };
  const admits: NonNullable<StreamsServerOptions["admit"]>[] = [
    (_peer, hello) => hello.token === "secret" ? denied : undefined,
    () => Promise.resolve(denied),
    () => Promise.reject(no),
  ];
  for (const admit of admits) {
    const { message } = await refusal((agent) => agent.hello(), { admit });
    assertEquals(message, no);
  }
});

Deno.test("an agent that does not go when refused is cut off", async () => {
  const { agent } = await refusal((agent) => agent.hello({ version: 7 }));
  assertEquals(agent.ended, []);
  await agent.timers.advance(CLOSE_GRACE_MS);
  assertEquals(agent.ended.sort(), ["client", "server"]);
});

Deno.test("a second hello ends the link", async () => {
  const agent = new ScriptedAgent();
  const closed = Promise.withResolvers<string>();
  const opening = agent.open({
    onClosed: (_link: AgentLink, reason) => closed.resolve(reason),
  });
  await settled();
  agent.hello();
  await opening;
  agent.hello();
  assertEquals(await closed.promise, "a second hello");
});

Deno.test("a link that breaks before the hello is refused with the reason", async () => {
  const agent = new ScriptedAgent();
  const opening = agent.open();
  agent.pair.break("cable cut");
  const error = await assertRejects(() => opening, LinkError);
  assert(error.message.includes("cable cut"));
});

/** Our agent and a server that says what it is told. */
class ScriptedServer {
  readonly timers = new FakeTimers();
  readonly pair: ConnectionPair;
  readonly events: string[] = [];
  readonly failed: string[] = [];
  status = "";
  control: AgentControl | undefined;

  constructor() {
    const link = serveStreamsAgent({
      hello: AGENT,
      timers: this.timers,
      onDial: () => ({ cancel: () => {} }),
      onServerHello: (_hello, control) => void (this.control = control),
      onEvent: (event) => this.events.push(event.type),
      onFailed: (error) => this.failed.push(error.message),
    });
    this.pair = new ConnectionPair({
      clock: this.timers,
      methods: link.methods,
      onClosed: (role, reason) => {
        if (role === "server") link.disconnected(reason);
      },
    });
  }

  async say(
    ...events: Parameters<typeof encodeServerEvent>[0][]
  ): Promise<void> {
    const call = startCall(this.pair.client, {
      path: LINK_METHODS.control,
      authority: "agent",
    }, {
      onMetadata() {},
      onBody() {},
      onWritable() {},
      onStatus: (status) => void (this.status = status.message),
    });
    for (const event of events) call.sendMessage(encodeServerEvent(event));
    await settled();
  }
}

const hello = { type: "hello", hello: SERVER } as const;
const admission = { type: "admission" } as const;

Deno.test("an agent takes no connection before the hellos", async () => {
  const server = new ScriptedServer();
  const caller = new ScriptedCaller(server.pair.client, PROXY_PATH);
  await settled();
  assertEquals(caller.received, [
    "status FAILED_PRECONDITION Cannot take a connection: the hellos come first",
  ]);
});

Deno.test("an agent that receives no hello gives up after 10 s", () => {
  const server = new ScriptedServer();
  server.timers.advance(HELLO_DEADLINE_MS);
  assertEquals(server.failed, ["the server said no hello within 10 s"]);
});

Deno.test("a connection lost before the server has called leaves no timer behind", () => {
  const server = new ScriptedServer();
  server.pair.break("cable cut");
  assertEquals(server.failed.length, 1);
  assert(server.failed[0]!.includes("cable cut"), server.failed[0]);
  assertEquals(server.timers.pendingCount, 0);
});

Deno.test("a connection lost later is one failure, and one only", async () => {
  const server = new ScriptedServer();
  await server.say(hello, admission);
  server.pair.break("cable cut");
  assertEquals(server.failed.length, 1);
  assertEquals(server.timers.pendingCount, 0);
});

Deno.test("events after the hello reach the agent, unknown ones do not", async () => {
  const server = new ScriptedServer();
  await server.say(
    hello,
    admission,
    { type: "drain" },
    { type: "reconnect", reason: "ids run out", delayMs: 5 },
    { type: "announced-services", names: [] },
  );
  assertEquals(server.events, ["drain", "reconnect", "announced-services"]);
  assertEquals(server.failed, []);
  assertEquals(server.timers.pendingCount, 0);
});

Deno.test("a refusal reaches the agent word for word", async () => {
  const server = new ScriptedServer();
  await server.say(hello, {
    type: "refusal",
    reason: "no seat for node7",
    code: "TUN311",
  });
  assertEquals(server.failed, ["no seat for node7"]);
});

Deno.test("a link stands when the server has admitted the agent, no sooner", async () => {
  const server = new ScriptedServer();
  await server.say(hello);
  assertEquals(server.control, undefined);
  server.timers.advance(HELLO_DEADLINE_MS);
  assertEquals(server.failed, [
    "the server did not admit this agent within 10 s",
  ]);
  const admitting = new ScriptedServer();
  await admitting.say(hello, admission, admission);
  assert(admitting.control !== undefined);
  assertEquals(admitting.failed, ["a second admission"]);
});

Deno.test("a server that starts wrong is told so", async () => {
  const wrong = new ScriptedServer();
  await wrong.say({ type: "drain" });
  assertEquals(wrong.status, "the server began without a hello");
  const old = new ScriptedServer();
  await old.say({ type: "hello", hello: { ...SERVER, version: 9 } });
  assert(old.status.includes("server speaks link version 9"));
  const twice = new ScriptedServer();
  await twice.say(hello, hello);
  assertEquals(twice.failed, ["a second hello"]);
});

Deno.test("an agent can end its link", async () => {
  const server = new ScriptedServer();
  await server.say(hello, admission);
  server.control!.end("drained");
  await settled();
  assertEquals(server.status, "drained");
});
