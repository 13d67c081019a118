import { assertEquals } from "@std/assert";
import { FakeStream, fields } from "../../tests/support/memory/fake_stream.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { StreamEvents } from "../streams/stream.ts";
import { HealthService } from "./health.ts";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthListResponse,
  ServingStatus,
} from "./health_messages.ts";
import { frameMessage, MessageReader } from "./message_reader.ts";
import { GrpcRouter } from "./server.ts";

function ask(
  health: HealthService,
  method: string,
  request: Uint8Array = new Uint8Array(0),
): { stream: FakeStream; peer: StreamEvents } {
  const stream = new FakeStream();
  const router = new GrpcRouter({
    methods: health.methods,
    timers: new FakeTimers(),
  });
  const peer = router.accept(stream).onHeaders(fields({
    ":method": "POST",
    ":path": `/grpc.health.v1.Health/${method}`,
    "content-type": "application/grpc",
  }));
  peer.onData(frameMessage(request));
  peer.onEnd();
  return { stream, peer };
}

function answers(stream: FakeStream): Uint8Array[] {
  const messages: Uint8Array[] = [];
  const reader = new MessageReader({ onMessage: (m) => messages.push(m) });
  reader.push(Uint8Array.from(stream.body));
  return messages;
}

function watched(stream: FakeStream): number[] {
  return answers(stream).map((m) => HealthCheckResponse.decode(m).status);
}

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = ServingStatus;

/** Lets answers that are promises come out. */
const settled = () => new Promise((done) => setTimeout(done, 0));

Deno.test("Check says what was set, and NOT_FOUND for the rest", async () => {
  const health = new HealthService();
  health.setStatus("", "SERVING");
  health.setStatus("ProxyService", "NOT_SERVING");
  const whole = ask(health, "Check");
  const one = ask(
    health,
    "Check",
    HealthCheckRequest.encode({ service: "ProxyService" }),
  );
  const none = ask(
    health,
    "Check",
    HealthCheckRequest.encode({ service: "x" }),
  );
  await settled();
  assertEquals(watched(whole.stream), [SERVING]);
  assertEquals(watched(one.stream), [NOT_SERVING]);
  assertEquals(none.stream.log[0]!.includes("grpc-status: 5"), true);
});

Deno.test("a request that is no protobuf is INVALID_ARGUMENT", async () => {
  const { stream } = ask(
    new HealthService(),
    "Check",
    Uint8Array.of(0x0a, 0x7f),
  );
  await settled();
  assertEquals(stream.log[0]!.includes("grpc-status: 3"), true);
});

Deno.test("List answers with all services", async () => {
  const health = new HealthService();
  health.setStatus("a", "SERVING");
  health.setStatus("b", "NOT_SERVING");
  const { stream } = ask(health, "List");
  await settled();
  assertEquals(HealthListResponse.decode(answers(stream)[0]!), {
    statuses: { a: { status: SERVING }, b: { status: NOT_SERVING } },
  });
});

Deno.test("Watch sends the status now and every change, once", () => {
  const health = new HealthService();
  const request = HealthCheckRequest.encode({ service: "late" });
  const { stream, peer } = ask(health, "Watch", request);
  health.setStatus("other", "SERVING");
  health.setStatus("late", "SERVING");
  health.setStatus("late", "SERVING");
  health.setStatus("late", "NOT_SERVING");
  assertEquals(watched(stream), [SERVICE_UNKNOWN, SERVING, NOT_SERVING]);
  assertEquals(health.watcherCount, 1);
  peer.onReset({ by: "peer", code: 8, reason: "" });
  assertEquals(health.watcherCount, 0);
  health.setStatus("late", "SERVING");
  assertEquals(watched(stream).length, 3);
});

Deno.test("a watcher that does not read costs one answer and gets the latest", () => {
  const health = new HealthService();
  const { stream, peer } = ask(health, "Watch");
  stream.credit = 0;
  health.setStatus("", "SERVING");
  health.setStatus("", "NOT_SERVING");
  health.setStatus("", "SERVING");
  health.setStatus("", "NOT_SERVING");
  stream.credit = 1_000;
  peer.onWritable();
  assertEquals(watched(stream), [SERVICE_UNKNOWN, SERVING, NOT_SERVING]);
});
