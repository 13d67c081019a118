import { assertEquals } from "@std/assert";
import { RecordedErrors } from "../../../tests/support/watch/recorded_errors.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { viewOf } from "../../../tests/support/xds/scripted_subscriber.ts";
import { clientGroup } from "../generate/client_group.ts";
import { SLICE_MS } from "../../../platform/time/slices.ts";
import { ViewPreparation } from "./pushes.ts";
import { SEES_EVERYTHING } from "../../catalog/model/model.ts";

const EMPTY = viewOf({});
const ENVOY = clientGroup("envoy", SEES_EVERYTHING);
const GRPC = clientGroup("grpc", SEES_EVERYTHING);

/** Each view has so many services, and each of them costs `costMs`. */
function rigOf(services: number, costMs: number) {
  const timers = new FakeTimers();
  const made: string[] = [];
  const preparation = new ViewPreparation({
    *preparing({ form }) {
      for (let index = 0; index < services; index++) {
        timers.advance(costMs);
        yield;
      }
      made.push(form);
    },
    viewOf: ({ form }) => made.includes(form) ? EMPTY : undefined,
  }, timers);
  return { timers, made, preparation };
}

Deno.test("ViewPreparation makes what is quick at once", () => {
  const { made, preparation } = rigOf(SLICE_MS - 1, 1);
  let done = 0;
  preparation.prepare([ENVOY], () => done++);
  assertEquals([made, done, preparation.isBusy], [["envoy"], 1, false]);
  preparation.prepare([], () => done++);
  assertEquals(done, 2);
});

Deno.test("ViewPreparation lets the event loop have its turn", () => {
  const { timers, made, preparation } = rigOf(100, 1);
  let done = 0;
  const startMs = timers.now();
  preparation.prepare([ENVOY], () => done++);
  assertEquals(timers.now() - startMs, SLICE_MS);
  assertEquals([made, done, preparation.isBusy], [[], 0, true]);
  while (preparation.isBusy) timers.advance(0);
  assertEquals([made, done], [["envoy"], 1]);
});

Deno.test("ViewPreparation makes what is asked for meanwhile, each view once", () => {
  const { timers, made, preparation } = rigOf(100, 1);
  const done: string[] = [];
  preparation.prepare([ENVOY], () => done.push("first"));
  preparation.prepare([GRPC], () => done.push("second"));
  preparation.prepare([GRPC], () => done.push("third"));
  while (preparation.isBusy) timers.advance(0);
  assertEquals(made, ["envoy", "grpc"]);
  assertEquals(done, ["first", "second", "third"]);
});

Deno.test("ViewPreparation lets no first view hold up changes of others", () => {
  const { timers, preparation } = rigOf(100, 1);
  const done: string[] = [];
  preparation.prepare([ENVOY], () => done.push("envoy"));
  while (preparation.isBusy) timers.advance(0);
  preparation.prepare([GRPC], () => done.push("grpc"));
  preparation.prepare([ENVOY], () => done.push("envoy again"));
  preparation.prepare([ENVOY, GRPC], () => done.push("both"));
  while (preparation.isBusy) timers.advance(0);
  assertEquals(done, ["envoy", "envoy again", "grpc", "both"]);
});

Deno.test("ViewPreparation goes on with the others when one fails", () => {
  const timers = new FakeTimers();
  const done: string[] = [];
  const preparation = new ViewPreparation({
    *preparing({ form }) {
      timers.advance(SLICE_MS);
      yield;
      if (form === "envoy") throw new Error("a defect");
    },
    viewOf: () => undefined,
  }, timers);
  preparation.prepare([ENVOY], () => done.push("envoy"));
  preparation.prepare([GRPC], () => done.push("grpc"));
  using errors = new RecordedErrors();
  while (preparation.isBusy) timers.advance(0);
  assertEquals(errors.messages, ["a defect"]);
  // Its callers wait no longer, or no client would receive anything again.
  assertEquals(done, ["envoy", "grpc"]);
});

Deno.test("ViewPreparation forgets everything when it is stopped", () => {
  const { timers, made, preparation } = rigOf(100, 1);
  preparation.prepare([ENVOY], () => made.push("done"));
  preparation.stop();
  timers.advance(1_000);
  assertEquals(made, []);
  assertEquals(timers.pendingCount, 0);
});
