/**
 * Long texts made piece by piece, so that making one keeps the event loop for a
 * moment only: a scrape of five thousand services would stop all traffic for a
 * fifth of a second.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { jsonText } from "../../platform/text/printable.ts";

/** How long a text may be made at a stretch. */
export const TEXT_SLICE_MS = 0.5;

/** Pieces are gathered to this, so that there are few writes. Characters. */
const CHUNK_LENGTH = 16 * 1024;

/**
 * @param pieces Each takes far less than a slice; an empty one gives nothing but
 *   the chance of a pause.
 */
export function slicedText(
  pieces: Iterable<string>,
  now: () => number = () => performance.now(),
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = pieces[Symbol.iterator]();
  const encoder = new TextEncoder();
  let isFirst = true;
  return new ReadableStream({
    async pull(controller) {
      let text = "";
      let isOver = false;
      while (!isOver && text.length < CHUNK_LENGTH) {
        if (text !== "" || !isFirst) {
          await new Promise((go) => setImmediate(go));
        }
        isFirst = false;
        const untilMs = now() + TEXT_SLICE_MS;
        while (text.length < CHUNK_LENGTH && now() < untilMs) {
          const { done, value } = iterator.next();
          if (done === true) {
            isOver = true;
            break;
          }
          text += value;
        }
      }
      if (text !== "") controller.enqueue(encoder.encode(text));
      if (isOver) controller.close();
    },
    cancel: () => void iterator.return?.(),
  }, { highWaterMark: 0 });
}

/**
 * A value as JSON, an item of its lists at a time: those that are the value, or
 * properties of it. Iterables count as lists, and are read item by item when
 * their turn comes.
 */
export function* jsonPieces(value: unknown): Iterable<string> {
  if (isList(value)) {
    yield* listPieces(value);
  } else if (typeof value === "object" && value !== null) {
    let before = "{";
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      yield `${before}${jsonText(key)}:`;
      if (isList(item)) yield* listPieces(item);
      else yield jsonText(item);
      before = ",";
    }
    yield before === "{" ? "{}" : "}";
  } else {
    yield jsonText(value);
  }
  yield "\n";
}

function* listPieces(items: Iterable<unknown>): Iterable<string> {
  let before = "[";
  for (const item of items) {
    yield `${before}${jsonText(item)}`;
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}

function isList(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null &&
    Symbol.iterator in value && !("toJSON" in value);
}
