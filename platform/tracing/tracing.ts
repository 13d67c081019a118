/**
 * Spans of OpenTelemetry, by the platform's own exporter: it is on with
 * `OTEL_DENO=true` in the environment, and otherwise costs the check of a
 * variable.
 *
 * A span is one attempt (a dial, a join, a push), never a connection's life. A
 * call that its caller did not sample is not traced here either. The platform
 * exports in the background, from limited memory: without a collector, only
 * spans are lost.
 *
 * It knows neither who starts spans nor how a context travels.
 *
 * @module
 */

import {
  SAMPLED_FLAG,
  type TraceContext,
} from "../../proto/peer/trace_context.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import { messageOf } from "../errors/error_code.ts";
import type { ConnectionFacts } from "../log/connection_log.ts";
import { VERSION } from "../process/version.ts";

/** Longest text of an attribute: peers choose some. */
const TEXT_LENGTH_MAX = 200;

/** Which side of a call a span is; OpenTelemetry's numbers. */
export const SPAN_KINDS = { internal: 0, server: 1, client: 2 } as const;

/** The facts at the start of a span. */
export interface SpanStart {
  readonly kind?: keyof typeof SPAN_KINDS;
  /**
   * Absent: the span begins a trace, or belongs to the program's present one.
   */
  readonly parent?: TraceContext | undefined;
  readonly attributes?: SpanAttributes;
}

/** What our spans say; the names are ours, there are none for tunnels. */
export const SPAN_ATTRIBUTES = {
  id: "tunnel.connection.id",
  target: "tunnel.target",
  protocol: "network.transport",
  node: "tunnel.node",
  server: "tunnel.server",
  service: "tunnel.service",
} as const;

/** Few, and bounded. */
export type SpanAttributes = Readonly<
  Record<string, string | number | boolean | undefined>
>;

/** One that is sampled, and has not ended. */
export interface Span {
  /** For the programs that it calls. */
  readonly context: TraceContext;
  set(attributes: SpanAttributes): void;
  /** @param problem Absent: it went well. */
  end(problem?: string): void;
}

/** The used part of OpenTelemetry's JavaScript API. */
interface PlatformSpan {
  spanContext(): {
    readonly traceId: string;
    readonly spanId: string;
    readonly traceFlags: number;
  };
  setAttribute(name: string, value: string | number | boolean): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

interface PlatformTracer {
  startSpan(
    name: string,
    options: { kind: number },
    context?: PlatformContext,
  ): PlatformSpan;
}

interface PlatformContext {
  getValue(key: symbol): unknown;
}

/** A span's status. */
const STATUS_ERROR = 2;

/** The key of a span in a context of OpenTelemetry's API. */
const SPAN_KEY = Symbol.for("OpenTelemetry Context Key SPAN");

const tracer = openTracer();

/** Whether spans are exported at all. */
export const isTracing: boolean = tracer !== undefined;

/** Starts a span; `undefined` when tracing is off. */
export function startSpan(
  name: string,
  { kind = "internal", parent, attributes }: SpanStart = {},
): Span | undefined {
  if (tracer === undefined) return undefined;
  if (parent !== undefined && (parent.flags & SAMPLED_FLAG) === 0) {
    return undefined;
  }
  const options = { kind: SPAN_KINDS[kind] };
  const span = parent === undefined
    ? tracer.startSpan(name, options)
    : tracer.startSpan(name, options, contextOf(parent));
  const { traceId, spanId, traceFlags } = span.spanContext();
  if ((traceFlags & SAMPLED_FLAG) === 0) return undefined;
  const started = new StartedSpan(span, { traceId, spanId, flags: traceFlags });
  if (attributes !== undefined) started.set(attributes);
  return started;
}

/** A child span; `undefined` when its parent is not sampled. */
export function startChild(
  name: string,
  parent: TraceContext | undefined,
  start: Omit<SpanStart, "parent"> = {},
): Span | undefined {
  return tracer === undefined || parent === undefined
    ? undefined
    : startSpan(name, { ...start, parent });
}

/**
 * The span of a dial, until its answer; `undefined` where none is wanted.
 *
 * @param parent The caller's.
 */
export function dialSpan(
  name: string,
  { id, target, node, service }: ConnectionFacts,
  parent?: TraceContext,
  kind: "server" | "client" = "server",
): Span | undefined {
  return tracer && startSpan(name, {
    kind,
    parent,
    attributes: {
      [SPAN_ATTRIBUTES.id]: id,
      [SPAN_ATTRIBUTES.target]: target?.address,
      [SPAN_ATTRIBUTES.protocol]: target?.protocol,
      [SPAN_ATTRIBUTES.node]: node,
      [SPAN_ATTRIBUTES.service]: service,
    },
  });
}

/** Does `work` inside a span, where there is to be one. */
export async function inSpan<Result>(
  name: string,
  start: SpanStart,
  work: (trace: TraceContext | undefined) => Promise<Result>,
): Promise<Result> {
  const span = startSpan(name, start);
  if (span === undefined) return await work(start.parent);
  try {
    const result = await work(span.context);
    span.end();
    return result;
  } catch (error) {
    span.end(messageOf(error));
    throw error;
  }
}

class StartedSpan implements Span {
  #span: PlatformSpan | undefined;

  constructor(span: PlatformSpan, readonly context: TraceContext) {
    this.#span = span;
  }

  set(attributes: SpanAttributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined) continue;
      const short = typeof value === "string"
        ? clipped(value, TEXT_LENGTH_MAX)
        : value;
      this.#span?.setAttribute(name, short);
    }
  }

  end(problem?: string): void {
    const span = this.#span;
    this.#span = undefined;
    if (span === undefined) return;
    if (problem !== undefined) {
      const message = clipped(problem, TEXT_LENGTH_MAX);
      span.setStatus({ code: STATUS_ERROR, message });
    }
    span.end();
  }
}

/** A context with a span of another process in it. */
function contextOf({ traceId, spanId, flags }: TraceContext): PlatformContext {
  const context = { traceId, spanId, traceFlags: flags, isRemote: true };
  const span = { spanContext: () => context };
  return { getValue: (key) => key === SPAN_KEY ? span : undefined };
}

/**
 * There is no asking whether the exporter runs: a tracer that must not be used
 * throws. A span that is not ended is not exported.
 */
function openTracer(): PlatformTracer | undefined {
  try {
    const provider = Deno.telemetry.tracerProvider as unknown as {
      getTracer(name: string, version: string): PlatformTracer;
    };
    const tracer = provider.getTracer("tunnel", VERSION);
    tracer.startSpan("is anybody there?", { kind: SPAN_KINDS.internal });
    return tracer;
  } catch {
    return undefined;
  }
}
