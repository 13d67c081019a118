/**
 * The server's side of SPDY/3.1, as far as kubelets need it for exec, attach
 * and port-forward: streams that the client opens, no flow control (its clients
 * have none either).
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { Buffer } from "node:buffer";
import { constants, createDeflate, createInflate } from "node:zlib";
import type { Socket } from "../../../net/stream/socket.ts";

/** The header names of SPDY's dictionary (its §2.6.10.1), each with a length. */
const DICTIONARY_NAMES = [
  "options head post put delete trace accept accept-charset accept-encoding",
  "accept-language accept-ranges age allow authorization cache-control",
  "connection content-base content-encoding content-language content-length",
  "content-location content-md5 content-range content-type date etag expect",
  "expires from host if-match if-modified-since if-none-match if-range",
  "if-unmodified-since last-modified location max-forwards pragma",
  "proxy-authenticate proxy-authorization range referer retry-after server te",
  "trailer transfer-encoding upgrade user-agent vary via warning",
  "www-authenticate method get status 200_OK version HTTP/1.1 url public",
  "set-cookie keep-alive origin",
].join(" ").split(" ").map((name) => name.replace("_", " "));

/** What stands behind them. */
const DICTIONARY_TEXT =
  "10010120120220520630030230330430530630740240540640740840941041141241341441" +
  "5416417502504505203 Non-Authoritative Information204 No Content301 Moved " +
  "Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 " +
  "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar " +
  "Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, " +
  "Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif," +
  "application/xml,application/xhtml+xml,text/plain,text/javascript," +
  "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1," +
  "utf-,*,enq=0.";

const TYPE = {
  synStream: 1,
  synReply: 2,
  reset: 3,
  ping: 6,
  goAway: 7,
} as const;
const FIN = 1;

/** A stream that the client has opened. */
export class SpdyStream {
  readonly #chunks: Uint8Array[] = [];
  #wake: (() => void) | undefined;
  #hasEnded = false;

  constructor(
    readonly id: number,
    readonly headers: ReadonlyMap<string, string>,
    readonly session: SpdyServer,
  ) {}

  /** The next bytes; `null` at the stream's end. */
  async read(): Promise<Uint8Array | null> {
    while (this.#chunks.length === 0) {
      if (this.#hasEnded) return null;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    return this.#chunks.shift()!;
  }

  write(bytes: Uint8Array | string): Promise<void> {
    const chunk = typeof bytes === "string"
      ? new TextEncoder().encode(bytes)
      : bytes;
    return this.session.sendData(this.id, chunk, 0);
  }

  end(): Promise<void> {
    return this.session.sendData(this.id, new Uint8Array(0), FIN);
  }

  onData(chunk: Uint8Array, isLast: boolean): void {
    if (chunk.length > 0) this.#chunks.push(chunk);
    if (isLast) this.#hasEnded = true;
    this.#wake?.();
  }
}

/** See the module description. */
export class SpdyServer {
  readonly #socket: Socket;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #inflate;
  readonly #deflate;
  #inflated: Uint8Array[] = [];
  #deflated: Uint8Array[] = [];
  #writing: Promise<void> = Promise.resolve();

  constructor(socket: Socket, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    const options = {
      dictionary: dictionary(),
      finishFlush: constants.Z_SYNC_FLUSH,
    };
    this.#inflate = createInflate(options);
    this.#inflate.on("data", (chunk) => this.#inflated.push(chunk));
    this.#deflate = createDeflate(options);
    this.#deflate.on("data", (chunk) => this.#deflated.push(chunk));
  }

  /** Serves the connection to its end. */
  async run(): Promise<void> {
    for (;;) {
      const head = await this.#exactly(8);
      if (head === undefined) return;
      const view = new DataView(head.buffer);
      const length = view.getUint32(4) & 0xffffff;
      const payload = await this.#exactly(length);
      if (payload === undefined) return;
      const flags = head[4]!;
      const first = view.getUint32(0);
      if (first < 0x8000_0000) {
        this.#streams.get(first)?.onData(payload, (flags & FIN) !== 0);
      } else await this.#onControl(first & 0xffff, flags, payload);
    }
  }

  sendData(id: number, chunk: Uint8Array, flags: number): Promise<void> {
    return this.#send(id, flags, chunk);
  }

  /** Ends the connection behind what has been said. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#socket.closeWrite().catch(() => {});
  }

  async #onControl(
    type: number,
    flags: number,
    payload: Uint8Array,
  ): Promise<void> {
    const view = new DataView(payload.buffer, payload.byteOffset);
    if (type === TYPE.ping) return await this.#control(TYPE.ping, payload);
    if (type === TYPE.reset) {
      return this.#streams.get(view.getUint32(0))?.onData(NOTHING, true);
    }
    if (type !== TYPE.synStream) return;
    const id = view.getUint32(0);
    const headers = readHeaders(await this.#inflateAll(payload.subarray(10)));
    const stream = new SpdyStream(id, headers, this);
    this.#streams.set(id, stream);
    if ((flags & FIN) !== 0) stream.onData(NOTHING, true);
    const block = await this.#deflateAll(Uint8Array.of(0, 0, 0, 0));
    await this.#control(TYPE.synReply, joinedBytes([uint32(id), block]));
    this.#onStream(stream);
  }

  #control(type: number, payload: Uint8Array): Promise<void> {
    return this.#send((0x8003_0000 | type) >>> 0, 0, payload);
  }

  #send(first: number, flags: number, payload: Uint8Array): Promise<void> {
    const head = new Uint8Array(8);
    const view = new DataView(head.buffer);
    view.setUint32(0, first);
    view.setUint32(4, payload.length);
    view.setUint8(4, flags);
    const frame = joinedBytes([head, payload]);
    this.#writing = this.#writing.then(async () => {
      await this.#socket.writeAll(frame);
    }).catch(() => {}); // The client has left; `run` sees it, too.
    return this.#writing;
  }

  async #exactly(count: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count;) {
      const read = await this.#socket.read(bytes.subarray(at))
        .catch(() => null);
      if (read === null) return undefined;
      at += read;
    }
    return bytes;
  }

  async #inflateAll(block: Uint8Array): Promise<Uint8Array> {
    this.#inflated = [];
    await new Promise((resolve) => this.#inflate.write(block, resolve));
    await flushed(this.#inflate);
    return joinedBytes(this.#inflated);
  }

  async #deflateAll(headers: Uint8Array): Promise<Uint8Array> {
    this.#deflated = [];
    this.#deflate.write(headers);
    await flushed(this.#deflate);
    return joinedBytes(this.#deflated);
  }
}

const NOTHING = new Uint8Array(0);

function flushed(
  stream: { flush(kind: number, done: () => void): void },
): Promise<void> {
  return new Promise((resolve) =>
    stream.flush(constants.Z_SYNC_FLUSH, resolve)
  );
}

function uint32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

function dictionary(): Buffer {
  const encoder = new TextEncoder();
  const parts = DICTIONARY_NAMES.flatMap((
    name,
  ) => [uint32(name.length), encoder.encode(name)]);
  return Buffer.from(joinedBytes([...parts, encoder.encode(DICTIONARY_TEXT)]));
}

function readHeaders(block: Uint8Array): ReadonlyMap<string, string> {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const decoder = new TextDecoder();
  let at = 4;
  const text = () => {
    const length = view.getUint32(at);
    const value = decoder.decode(block.subarray(at + 4, at + 4 + length));
    at += 4 + length;
    return value;
  };
  const headers = new Map<string, string>();
  for (let left = view.getUint32(0); left > 0; left--) {
    headers.set(text().toLowerCase(), text());
  }
  return headers;
}
