/**
 * The body of a watch to its events: one JSON object per line, for as long as
 * the connection lasts.
 *
 * @module
 */

import { unawaited } from "../../platform/errors/internal_errors.ts";
import { isStatus, KubernetesError } from "./errors.ts";
import type { KubernetesObject, StatusObject } from "./objects.ts";

/** Largest line: etcd takes no object over 1.5 MiB, as JSON a little more. */
export const WATCH_LINE_BYTES_MAX = 8 * 1024 * 1024;

/** An event of a watch. */
export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  /** Nothing has happened up to here. */
  | { readonly type: "BOOKMARK"; readonly object: KubernetesObject }
  | { readonly type: "ERROR"; readonly status: StatusObject };

/**
 * Reads events until the body ends, or until `signal` says so.
 *
 * @throws {KubernetesError} When a line is none, which leaves no way to go on.
 */
export async function* watchEvents<T extends KubernetesObject>(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of lines(body, signal)) {
    // Some servers put an empty line between two objects.
    if (line.trim() !== "") yield parseEvent<T>(line);
  }
}

async function* lines(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let length = 0;
  const reader = body.getReader();
  // Aborting the request between two reads would leave the second one waiting.
  signal.addEventListener(
    "abort",
    () => unawaited("task", cancel(reader)),
  );
  while (!signal.aborted) {
    const chunk = await nextChunk(reader);
    if (chunk === undefined) break;
    const text = decoder.decode(chunk, { stream: true });
    let begin = 0;
    let end = text.indexOf("\n");
    while (end !== -1) {
      parts.push(text.slice(begin, end));
      yield parts.splice(0).join("");
      length = 0;
      begin = end + 1;
      end = text.indexOf("\n", begin);
    }
    parts.push(text.slice(begin));
    length += text.length - begin;
    if (length > WATCH_LINE_BYTES_MAX) {
      throw broken(`a line is longer than ${WATCH_LINE_BYTES_MAX} bytes`);
    }
  }
  // Without its line feed the last one was cut off: it comes again.
}

/** A broken body counts as ended: events are numbered, so none is lost. */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Uint8Array | undefined> {
  try {
    return (await reader.read()).value;
  } catch {
    return undefined;
  }
}

async function cancel(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<void> {
  try {
    await reader.cancel();
  } catch {
    // It is broken already, which ends the reading as well.
  }
}

function parseEvent<T extends KubernetesObject>(line: string): WatchEvent<T> {
  let value: { type?: unknown; object?: unknown } | null;
  try {
    value = JSON.parse(line);
  } catch {
    // The line itself tells more than the parser's error.
    throw broken(`"${line.slice(0, 80)}" is no JSON`);
  }
  const { type, object } = value ?? {};
  switch (type) {
    case "ERROR":
      if (isStatus(object)) return { type, status: object };
      break;
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      if (hasMetadata(object)) return { type, object: object as T };
      break;
    case "BOOKMARK":
      if (hasMetadata(object)) return { type, object };
      break;
  }
  throw broken(`"${line.slice(0, 80)}" is no event`);
}

function hasMetadata(object: unknown): object is KubernetesObject {
  return typeof object === "object" && object !== null &&
    typeof (object as KubernetesObject).metadata === "object" &&
    (object as KubernetesObject).metadata !== null;
}

function broken(what: string): KubernetesError {
  return new KubernetesError(0, "", `Cannot understand the watch: ${what}`);
}
