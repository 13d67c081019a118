/** The part of `@std/streams` that this project uses, typed after its JSR documentation. */

export class TextLineStream extends TransformStream<string, string> {
  constructor(options?: { allowCR?: boolean });
}
export function toText(
  stream: ReadableStream<string> | ReadableStream<Uint8Array>,
): Promise<string>;
export function toBytes(
  stream: ReadableStream<Uint8Array>,
): Promise<Uint8Array>;
