/**
 * A stand-in for a kubelet: TLS with client certificates, logs with and without
 * an end, attach as a plain echo. Enough for `kubectl logs`, with no containers
 * behind it.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { denoStream } from "../../../net/stream/platform_stream.ts";
import { nodeTlsServer } from "../../../net/tls/node/node_tls_server.ts";
import { Socket } from "../../../net/stream/socket.ts";
import type { Stream } from "../../../net/stream/stream.ts";
import type { Fields } from "../../../net/http1/fields.ts";
import {
  BodyFraming,
  bodyLength,
  NO_BODY,
} from "../../../net/http1/framing.ts";
import { type RequestHead, RequestReader } from "../../../net/http1/head.ts";
import { arrivals } from "./sockets.ts";

/** PEM. */
export interface KubeletMaterial {
  readonly cert: string;
  readonly key: string;
  /** Of the certificates that callers must show. */
  readonly ca: string;
}

/** A request as it arrived. */
export interface KubeletRequest {
  readonly method: string;
  readonly target: string;
  /** Of the fields. */
  readonly lines: readonly string[];
  /** Of the caller's certificate. */
  readonly commonName: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** See the module description. */
export class StandInKubelet implements AsyncDisposable {
  readonly port: number;
  /** In order of arrival. */
  readonly requests: KubeletRequest[] = [];
  /** How connections ended that did not end in order. */
  readonly failures: unknown[] = [];
  /** Logs that are being followed now. */
  readonly followers = new Set<Socket>();
  readonly #listener: Deno.TcpListener;
  readonly #material: KubeletMaterial;
  readonly #accepting: Promise<void>;
  readonly #sockets = new Set<Socket>();
  #onChange = () => {};

  constructor(material: KubeletMaterial) {
    this.#material = material;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = this.#listener.addr.port;
    this.#accepting = this.#accept();
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Adds a line to every log that is followed. */
  async log(line: string): Promise<void> {
    for (const socket of this.followers) await sayChunk(socket, `${line}\n`);
  }

  /** Waits until so many follow a log. */
  async followedBy(count: number): Promise<void> {
    while (this.followers.size !== count) {
      await new Promise<void>((resolve) => this.#onChange = resolve);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    for (const socket of this.#sockets) socket.close();
  }

  async #accept(): Promise<void> {
    for await (const conn of arrivals(this.#listener)) {
      const { ca, ...pair } = this.#material;
      nodeTlsServer(denoStream(conn), {
        credentials: { ...pair, ca },
        clientCertificate: "required",
        alpn: ["http/1.1"],
        handshakeTimeoutMs: 5_000,
        minVersion: "TLSv1.2",
      }).then((stream) => this.#serve(stream), () => {});
    }
  }

  async #serve(stream: Stream): Promise<void> {
    const socket = new Socket(stream);
    this.#sockets.add(socket);
    try {
      // Go's clients keep connections for the next request.
      while (await this.#serveOne(socket));
      await socket.closeWrite();
    } catch (error) {
      // The caller has left, which some tests are about.
      this.failures.push(error);
    } finally {
      socket.close();
      this.#sockets.delete(socket);
    }
  }

  /** @returns Whether another request may follow. */
  async #serveOne(socket: Socket): Promise<boolean> {
    const head = await readHead(socket);
    if (head === undefined) return false;
    const { method, target, fields } = head;
    const { commonName } = socket.stream.identity;
    this.requests.push({ method, target, lines: fields.lines, commonName });
    this.#onChange();
    const url = new URL(target, "http://kubelet");
    const [, verb] = url.pathname.split("/");
    const closes = fields.list("connection").includes("close");
    const upgrade = fields.one("upgrade");
    if (upgrade !== undefined) {
      await this.#switch(socket, verb!, upgrade, url);
      return false;
    }
    const body = await readBody(socket, fields);
    if (verb === "containerLogs") {
      await this.#logs(socket, url.searchParams.get("follow") === "true");
    } else if (verb === "none") {
      return false;
    } else if (verb === "cut") {
      await say(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
      return false;
    } else if (verb === "until-close") {
      await say(socket, "HTTP/1.1 200 OK\r\n\r\nto the end");
      return false;
    } else {
      const text = verb === "echo" ? decoder.decode(body) : `${verb}\n`;
      await say(
        socket,
        `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nKeep-Alive: 5\r\n` +
          `Content-Length: ${text.length}\r\n\r\n${text}`,
      );
    }
    return !closes;
  }

  async #logs(socket: Socket, isFollowed: boolean): Promise<void> {
    const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" +
      "Transfer-Encoding: chunked\r\n\r\n";
    await say(socket, head);
    await sayChunk(socket, "the first line\n");
    if (!isFollowed) return await say(socket, "0\r\n\r\n");
    this.followers.add(socket);
    this.#onChange();
    try {
      // A caller that has seen enough hangs up.
      while (await socket.fill()) socket.drop(socket.bytes.length);
    } finally {
      this.followers.delete(socket);
      this.#onChange();
    }
  }

  async #switch(
    socket: Socket,
    verb: string,
    upgrade: string,
    url: URL,
  ): Promise<void> {
    if (verb === "denied") {
      return await say(
        socket,
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n",
      );
    }
    if (verb !== "attach") throw new TypeError(`no change to ${upgrade}`);
    await say(
      socket,
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
        `Upgrade: ${upgrade}\r\n\r\n`,
    );
    if (url.pathname !== "/attach/reset") return await echo(socket);
    await socket.fill();
    return socket.reset();
  }
}

async function echo(socket: Socket): Promise<void> {
  const buffer = new Uint8Array(16 * 1024);
  for (;;) {
    const count = await socket.read(buffer);
    if (count === null) return;
    await socket.writeAll(buffer.subarray(0, count));
  }
}

async function readHead(
  socket: Socket,
): Promise<RequestHead | undefined> {
  const reader = new RequestReader("GET /path");
  while (await socket.fill()) {
    const { bytes } = socket;
    const read = reader.push(bytes);
    socket.drop(bytes.length - (read?.rest.length ?? 0));
    if (read !== undefined) return read.head;
  }
  return undefined;
}

/** Of chunked bodies the framing stays in. */
async function readBody(
  socket: Socket,
  fields: Fields,
): Promise<Uint8Array> {
  const framing = new BodyFraming(bodyLength(fields, NO_BODY));
  const parts: Uint8Array[] = [];
  while (!framing.isDone && await socket.fill()) {
    const count = framing.take(socket.bytes);
    parts.push(socket.bytes.slice(0, count));
    socket.drop(count);
  }
  return joinedBytes(parts);
}

function say(socket: Socket, text: string): Promise<void> {
  return socket.writeAll(encoder.encode(text));
}

function sayChunk(socket: Socket, text: string): Promise<void> {
  return say(socket, `${text.length.toString(16)}\r\n${text}\r\n`);
}
