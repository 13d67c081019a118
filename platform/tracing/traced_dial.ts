/**
 * A dial that somebody asks of us, as a span: it ends with the answer, or when
 * the caller gives up.
 *
 * @module
 */

import { type DialAnswer, watchedDial } from "../../proto/link/dial_handler.ts";
import type { DialError } from "../../proto/peer/dial_error.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
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
  const over = ({ error, conduit }: { error?: DialError; conduit?: Conduit }) =>
    span.end(conduit === undefined ? error?.message ?? GAVE_UP : undefined);
  return watchedDial(answer, over, (answer) => dial(span.context, answer));
}

/** How the span of a dial ends that is not wanted any more. */
const GAVE_UP = "the caller gave up";
