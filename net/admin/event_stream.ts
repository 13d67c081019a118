/**
 * Server-sent events (WHATWG HTML §9.2): an answer that goes on until its client
 * is gone.
 *
 * What is next is asked for when all that came before has left. So a client that
 * reads slowly gets fewer events, and there is never a queue.
 *
 * @module
 */

import { jsonText } from "../../platform/text/printable.ts";
/** One event. */
export interface SentEvent {
  /** No line breaks; ours. */
  readonly name: string;
  /** Becomes JSON. */
  readonly data: unknown;
}

/** Silence after which a comment is sent: proxies and clients give up at 30 s. */
export const HEARTBEAT_MS = 15_000;

/**
 * @param next What there is to say since it was asked last; it may wait until
 *   there is something. `undefined`: all is said.
 * @param signal The client is gone; `next` should not wait any more.
 */
export function eventAnswer(
  next: () => Promise<readonly SentEvent[] | undefined>,
  signal: AbortSignal,
  heartbeatMs: number = HEARTBEAT_MS,
): Response {
  const encoder = new TextEncoder();
  let waiting: Promise<readonly SentEvent[] | undefined> | undefined;
  let isFirst = true;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      if (isFirst) {
        isFirst = false;
        // The head leaves at once, whenever there is something to say.
        return controller.enqueue(encoder.encode(": ok\n\n"));
      }
      waiting ??= next();
      const events = await orHeartbeat(waiting, heartbeatMs, signal);
      if (events === HEARTBEAT) return controller.enqueue(BEAT);
      waiting = undefined;
      if (events === undefined) return controller.close();
      const text = events.map(eventText).join("");
      controller.enqueue(text === "" ? BEAT : encoder.encode(text));
    },
  }, { highWaterMark: 0 });
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}

/** Whether an answer goes on until its client is gone. */
export function isEventStream({ headers }: Response): boolean {
  return headers.get("content-type") === "text/event-stream";
}

/** The form on the wire. */
export function eventText({ name, data }: SentEvent): string {
  return `event: ${name}\ndata: ${jsonText(data)}\n\n`;
}

const BEAT = new TextEncoder().encode(": beat\n\n");

const HEARTBEAT = "heartbeat";

async function orHeartbeat<T>(
  promise: Promise<T>,
  ms: number,
  signal: AbortSignal,
): Promise<T | typeof HEARTBEAT | undefined> {
  const other = Promise.withResolvers<typeof HEARTBEAT | undefined>();
  const timer = setTimeout(() => other.resolve(HEARTBEAT), ms);
  const gone = () => other.resolve(undefined);
  if (signal.aborted) gone();
  signal.addEventListener("abort", gone);
  try {
    return await Promise.race([promise, other.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", gone);
  }
}
