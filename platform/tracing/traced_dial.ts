/**
 * A dial that somebody asks of us, as a span: it ends with the answer, or when
 * the caller gives up.
 *
 * @module
 */

import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import type { PendingDial } from "../../proto/link/link.ts";
import type { TraceContext } from "../../proto/peer/trace_context.ts";
import { type SpanStart, startSpan } from "./tracing.ts";

/**
 * Makes a dial inside a span, where there is to be one.
 *
 * @param start Its `parent` is the caller's span.
 * @param dial Makes it; `trace` is for those that it asks.
 */
export function tracedDial(
  name: string,
  start: SpanStart,
  answer: DialAnswer,
  dial: (trace: TraceContext | undefined, answer: DialAnswer) => PendingDial,
): PendingDial {
  const span = startSpan(name, { ...start, kind: "server" });
  // Who did not sample it may still have asked us to pass that on.
  if (span === undefined) return dial(start.parent, answer);
  const pending = dial(span.context, {
    connected(conduit) {
      span.end();
      answer.connected(conduit);
    },
    failed(error) {
      span.end(error.message);
      answer.failed(error);
    },
  });
  return {
    cancel() {
      span.end("the caller gave up");
      pending.cancel();
    },
    sendEarly: (bytes) => pending.sendEarly?.(bytes) ?? 0,
  };
}
