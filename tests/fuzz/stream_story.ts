/**
 * What one stream tells its application, checked for order while it is told
 * (the contract of `StreamEvents`).
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { HeaderField } from "../../proto/hpack/header_field.ts";
import type { Stream, StreamEvents } from "../../proto/streams/stream.ts";

/** Returned by an application that has reset the stream: nothing may follow. */
export const DROPPED = "dropped";

/** One thing an application does. */
export type Act = (stream: Stream, chunk: Uint8Array) => typeof DROPPED | void;

/** What an application does in answer. */
export interface Activity {
  readonly onHeaders?: Act;
  readonly onData?: Act;
  readonly onEnd?: Act;
}

/** Where the story is; the names say what was told last. */
type Chapter = "nothing" | "headers" | "trailers" | "end" | "reset" | "dropped";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** See the module description. */
export class StreamStory {
  #chapter: Chapter = "nothing";
  #reported = "";
  #data = "";

  /** @param assertMayTell Throws when no stream may tell anything any more. */
  constructor(private readonly assertMayTell: () => void) {}

  /**
   * Everything that was told; the pieces of the body are put together. Without
   * the body when it broke a rule: how much of it is passed on before that is
   * seen depends on the cutting.
   */
  get text(): string {
    const isBroken = this.#reported.includes("reset by local");
    return isBroken ? this.#reported : `${this.#reported} body=${this.#data}`;
  }

  /** @throws {Error} If the engine has forgotten the stream. */
  assertEnded(): void {
    const isFinished = this.#isOver || this.#chapter === "end";
    assert(isFinished, `Unfinished: ${this.text}`);
  }

  /** The listener to give to the engine. */
  listener(stream: () => Stream, activity: Activity): StreamEvents {
    return {
      onInformational: (fields) =>
        this.#tell("nothing", "nothing", list(fields)),
      onHeaders: (fields) => {
        this.#tell("nothing", "headers", list(fields));
        this.#act(activity.onHeaders, stream());
      },
      onData: (chunk) => {
        this.#tell("headers", "headers", "");
        this.#data += chunk.toHex();
        stream().consumed(chunk.length);
        this.#act(activity.onData, stream(), chunk);
      },
      onTrailers: (fields) => this.#tell("headers", "trailers", list(fields)),
      onEnd: () => {
        const isAfterTrailers = this.#chapter === "trailers";
        this.#tell(isAfterTrailers ? "trailers" : "headers", "end", "end");
        this.#act(activity.onEnd, stream());
      },
      onWritable: () => this.#assertGoesOn(),
      onReset: ({ by, code }) => {
        this.#assertGoesOn();
        this.#chapter = "reset";
        this.#reported += ` reset by ${by} ${code}`;
      },
    };
  }

  #act(act: Act | undefined, stream: Stream, chunk = NO_BYTES): void {
    if (act?.(stream, chunk) !== DROPPED) return;
    assert(!this.#isOver, `Told of its own reset: ${this.text}`);
    this.#chapter = "dropped";
  }

  #assertGoesOn(): void {
    this.assertMayTell();
    assert(!this.#isOver, `Told behind the end: ${this.text}`);
  }

  get #isOver(): boolean {
    return this.#chapter === "reset" || this.#chapter === "dropped";
  }

  #tell(after: Chapter, next: Chapter, what: string): void {
    this.assertMayTell();
    assertEquals(this.#chapter, after, `Out of order: ${this.text}, ${what}`);
    this.#chapter = next;
    if (what !== "") this.#reported += ` ${what}`;
  }
}

function list(fields: readonly HeaderField[]): string {
  return JSON.stringify(fields.map(({ name, value }) => [name, value]));
}
