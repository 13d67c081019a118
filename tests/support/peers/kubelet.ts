/**
 * A stand-in for a kubelet: TLS with client certificates, logs with and without
 * an end, exec by WebSocket and SPDY, attach as a plain echo, port-forward to an
 * echo. Enough for `kubectl`, with no containers behind it.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { createHash } from "node:crypto";
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
import { SpdyServer, type SpdyStream } from "./spdy_server.ts";

const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

class WebSocketServer {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** The next message; `null` when the client has closed. */
  async receive(): Promise<Uint8Array | null> {
    for (;;) {
      const head = await this.#exactly(2);
      if (head === null) return null;
      const opcode = head[0]! & 0xf;
      let length = head[1]! & 0x7f;
      if (length === 126) length = number(await this.#exactly(2));
      else if (length === 127) length = number(await this.#exactly(8));
      const mask = await this.#exactly(4);
      const masked = await this.#exactly(length);
      if (mask === null || masked === null || opcode === CLOSE) return null;
      const payload = masked.map((byte, at) => byte ^ mask[at % 4]!);
      if (opcode === PING) await this.#frame(PONG, payload);
      else if (opcode !== PONG) return payload;
    }
  }

  send(payload: Uint8Array): Promise<void> {
    return this.#frame(BINARY, payload);
  }

  /** Says goodbye with 1000, "normal". */
  close(): Promise<void> {
    return this.#frame(CLOSE, Uint8Array.of(3, 232));
  }

  #frame(opcode: number, payload: Uint8Array): Promise<void> {
    const { length } = payload;
    const size = length < 126
      ? [length]
      : [126, Math.floor(length / 256), length % 256];
    const head = Uint8Array.of(0x80 | opcode, ...size);
    return this.#socket.writeAll(joinedBytes([head, payload]));
  }

  async #exactly(count: number): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count;) {
      const read = await this.#socket.read(bytes.subarray(at));
      if (read === null) return null;
      at += read;
    }
    return bytes;
  }
}

function number(bytes: Uint8Array | null): number {
  return [...bytes ?? []].reduce((sum, byte) => sum * 256 + byte, 0);
}

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

  constructor(material: KubeletMaterial, at: Deno.TcpListenOptions = ANYWHERE) {
    this.#material = material;
    this.#listener = Deno.listen(at);
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
      await this.#switch(socket, verb!, upgrade, fields, url);
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
    fields: Fields,
    url: URL,
  ): Promise<void> {
    if (verb === "denied") {
      return await say(
        socket,
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n",
      );
    }
    if (verb === "attach") {
      await say(socket, switching([`Upgrade: ${upgrade}`]));
      if (url.pathname !== "/attach/reset") return await echo(socket);
      await socket.fill();
      return socket.reset();
    }
    if (upgrade.toLowerCase() === "websocket") {
      return await webSocket(socket, fields, url);
    }
    await this.#spdy(socket, verb, fields, url);
  }

  async #spdy(
    socket: Socket,
    verb: string,
    fields: Fields,
    url: URL,
  ): Promise<void> {
    const wanted = fields.list("x-stream-protocol-version");
    const version = verb === "portForward"
      ? "portforward.k8s.io"
      : "v4.channel.k8s.io";
    if (!wanted.includes(version)) throw new Error(`not ${version}: ${wanted}`);
    await say(
      socket,
      switching([
        "Upgrade: SPDY/3.1",
        `X-Stream-Protocol-Version: ${version}`,
      ]),
    );
    const streams = new Map<string, SpdyStream>();
    const names = ["error", ...streamsOf(url)];
    const server = new SpdyServer(socket, (stream) => {
      const name = stream.headers.get("streamtype") ?? "";
      if (verb === "portForward") {
        streams.set(name + stream.headers.get("requestid"), stream);
        if (name !== "data") return;
        const error = streams.get(`error${stream.headers.get("requestid")}`);
        // Its end says that all went well.
        return void echoStream(stream).then(() => error?.end());
      }
      streams.set(name, stream);
      if (names.every((each) => streams.has(each))) {
        const channel = (name: string) => streams.get(name);
        void execute(url, {
          say: async (name, text) => await channel(name)?.write(text),
          read: () => channel("stdin")?.read() ?? Promise.resolve(null),
        }).then(async (status) => {
          await channel("error")!.write(status);
          for (const stream of streams.values()) await stream.end();
          await server.close();
        });
      }
    });
    await server.run();
  }
}

const ANYWHERE = { hostname: "127.0.0.1", port: 0 };

/** Where a command's bytes go and come from, whatever carries them. */
interface Channels {
  say(name: "stdout" | "stderr", bytes: Uint8Array | string): Promise<void>;
  read(): Promise<Uint8Array | null>;
}

/** Runs `echo WORD…`, `exit N` and `cat`. @returns Its status as JSON. */
async function execute(url: URL, channels: Channels): Promise<string> {
  const [program = "", ...words] = url.searchParams.getAll("command");
  if (program === "echo") await channels.say("stdout", `${words.join(" ")}\n`);
  if (program === "cat") {
    for (;;) {
      const bytes = await channels.read();
      if (bytes === null) break;
      await channels.say("stdout", bytes);
    }
  }
  if (program !== "exit") {
    return JSON.stringify({ metadata: {}, status: "Success" });
  }
  await channels.say("stderr", `leaving with ${words[0]}\n`);
  return JSON.stringify({
    metadata: {},
    status: "Failure",
    reason: "NonZeroExitCode",
    message: `command terminated with non-zero exit code`,
    details: { causes: [{ reason: "ExitCode", message: words[0] }] },
  });
}

function streamsOf({ searchParams }: URL): string[] {
  const isOn = (name: string) =>
    ["1", "true"].includes(searchParams.get(name) ?? "");
  const names = [["input", "stdin"], ["output", "stdout"], ["error", "stderr"]];
  return names.flatMap(([short, long]) =>
    isOn(short!) || isOn(long!) ? [long!] : []
  );
}

/** Channels by number: 0 stdin, 1 stdout, 2 stderr, 3 status, 255 its end. */
async function webSocket(
  socket: Socket,
  fields: Fields,
  url: URL,
): Promise<void> {
  const key = fields.one("sec-websocket-key");
  const accept = createHash("sha1")
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const protocol = fields.list("sec-websocket-protocol")[0]!;
  await say(
    socket,
    switching([
      "Upgrade: websocket",
      `Sec-WebSocket-Accept: ${accept}`,
      `Sec-WebSocket-Protocol: ${protocol}`,
    ]),
  );
  const server = new WebSocketServer(socket);
  const send = (channel: number, bytes: Uint8Array | string) => {
    const payload = typeof bytes === "string" ? encoder.encode(bytes) : bytes;
    return server.send(joinedBytes([Uint8Array.of(channel), payload]));
  };
  const status = await execute(url, {
    say: (name, bytes) => send(name === "stdout" ? 1 : 2, bytes),
    read: async () => {
      const message = await server.receive();
      return message === null || message[0] === 255
        ? null
        : message.subarray(1);
    },
  });
  await send(3, status);
  await server.close();
}

async function echoStream(stream: SpdyStream): Promise<void> {
  for (;;) {
    const bytes = await stream.read();
    if (bytes === null) return await stream.end();
    await stream.write(bytes);
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

function switching(lines: readonly string[]): string {
  return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n${
    lines.join("\r\n")
  }\r\n\r\n`;
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
