/**
 * A client of one HTTP/1.1 server, over sockets and TLS of our own: the
 * platform's `fetch` trusts the public authorities beside the one that it is
 * given, so anyone with a public certificate could pose as a private server.
 *
 * It follows no redirect, and sends no request twice, except an idempotent one
 * that was lost with a kept connection, or, once, with a new one.
 *
 * @module
 */

import { joinedBytes } from "../../proto/bytes/byte_arrays.ts";
import { VERSION } from "../../platform/process/version.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { hostPort, withoutBrackets } from "../../proto/peer/host_port.ts";
import type { Timer } from "../../proto/sync/clock.ts";
import { connectToHost } from "../dial/connect_host.ts";
import {
  proxyEnvironment,
  proxyFor,
  proxyOf,
  type ProxyServer,
} from "../dial/proxy_environment.ts";
import { openTunnel } from "../dial/proxy_tunnel.ts";
import { openSocksTunnel, type SocksTarget } from "../dial/socks_tunnel.ts";
import { headBytes } from "../http1/head.ts";
import type { Stream } from "../stream/stream.ts";
import { tlsClient } from "../tls/tls_client.ts";
import { NO_MATERIAL, type TlsMaterial } from "../tls/trust/credentials.ts";
import {
  type HttpAnswer,
  HttpConnection,
  NoAnswerYetError,
} from "./http_connection.ts";

/** The server's address, and the credentials for it. */
export interface HttpClientOptions {
  /** With an empty `ca` the public authorities are trusted. */
  readonly credentials: TlsMaterial;
  /** An HTTP proxy's; absent: the environment's. */
  readonly proxyUrl?: string | undefined;
}

/** One request. */
export interface HttpRequest {
  readonly method: string;
  /** `http:` or `https:`; the same server each time is the cheapest. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Ends the connection and the reading of the answer. */
  readonly signal: AbortSignal;
}

/** Connections that are kept while no request runs. */
export const IDLE_CONNECTIONS_MAX = 8;

/**
 * How long an idle connection is kept; servers keep them for a minute and more.
 */
const IDLE_MS = 30_000;

export class HttpClient implements Disposable {
  /** By origin, the newest last; each stays until its timer closes it. */
  readonly #idle = new Map<HttpConnection, {
    readonly origin: string;
    readonly timer: Timer;
  }>();
  #isClosed = false;

  constructor(private readonly options: HttpClientOptions) {}

  /**
   * @returns The answer, with any status.
   * @throws Why there is none; the reason of `signal` when that ended it.
   */
  async request(request: HttpRequest): Promise<Response> {
    const url = new URL(request.url);
    const bytes = requestBytes(request, url);
    const { method, signal } = request;
    for (let lost = 0;;) {
      const kept = this.#take(url.origin);
      const connection = kept ?? await this.#connect(url, signal);
      try {
        return responseOf(await connection.ask({ method, bytes, signal }));
      } catch (error) {
        const isCutOff = error instanceof NoAnswerYetError;
        if (!isCutOff || !REPEATABLE.has(method)) throw error;
        if (kept === undefined && ++lost > 1) throw error;
      }
    }
  }

  /** Running requests are still answered; no connection is kept. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const connection of this.#idle.keys()) this.#drop(connection);
  }

  #take(origin: string): HttpConnection | undefined {
    for (const [connection, one] of [...this.#idle].reverse()) {
      if (one.origin !== origin) continue;
      this.#forget(connection);
      if (connection.isOpen) return connection;
    }
    return undefined;
  }

  #keep(connection: HttpConnection, origin: string): void {
    if (this.#isClosed) return connection.close();
    const timer = systemTimers.after(IDLE_MS, () => this.#drop(connection));
    this.#idle.set(connection, { origin, timer });
    if (this.#idle.size <= IDLE_CONNECTIONS_MAX) return;
    for (const oldest of this.#idle.keys()) return this.#drop(oldest);
  }

  #forget(connection: HttpConnection): void {
    this.#idle.get(connection)?.timer.cancel();
    this.#idle.delete(connection);
  }

  #drop(connection: HttpConnection): void {
    this.#forget(connection);
    connection.close();
  }

  async #connect(url: URL, signal: AbortSignal): Promise<HttpConnection> {
    const stream = await this.#streamTo(url, signal);
    return new HttpConnection(
      stream,
      (connection) => this.#keep(connection, url.origin),
    );
  }

  async #streamTo(url: URL, signal: AbortSignal): Promise<Stream> {
    const host = withoutBrackets(url.hostname);
    const isSecure = url.protocol === "https:";
    const port = url.port === "" ? isSecure ? 443 : 80 : Number(url.port);
    const address = hostPort(host, port);
    const proxy = this.#proxyFor(host, port, isSecure);
    const to = proxy ?? { host, port };
    const stream = await connectToHost(to.host, to.port, {
      timers: systemTimers,
      signal,
    });
    const way = proxy === undefined
      ? stream
      : await throughProxy(stream, proxy, { host, port }, signal);
    if (!isSecure) return way;
    return await tlsClient(way, {
      credentials: this.options.credentials,
      serverName: host,
      alpn: ["http/1.1"],
      address,
      signal,
    });
  }

  #proxyFor(
    host: string,
    port: number,
    isSecure: boolean,
  ): ProxyServer | undefined {
    const { proxyUrl } = this.options;
    if (proxyUrl !== undefined) return proxyOf(proxyUrl, "proxy-url", PROXIES);
    if (!isSecure) return undefined;
    return proxyFor(host, port, proxyEnvironment((name) => Deno.env.get(name)));
  }
}

/** What kubectl's `proxy-url` may be. */
const PROXIES = ["http", "https", "socks5"] as const;

async function throughProxy(
  stream: Stream,
  proxy: ProxyServer,
  to: SocksTarget,
  signal: AbortSignal,
): Promise<Stream> {
  if (proxy.scheme === "socks5") {
    await openSocksTunnel(stream, to, proxy, signal);
    return stream;
  }
  const way = proxy.scheme === "http" ? stream : await tlsClient(stream, {
    credentials: NO_MATERIAL,
    serverName: proxy.host,
    alpn: ["http/1.1"],
    address: hostPort(proxy.host, proxy.port),
    signal,
  });
  await openTunnel(way, hostPort(to.host, to.port), proxy, signal);
  return way;
}

/**
 * Methods that may be sent twice, as in Go's client. A repeated PUT of a
 * Kubernetes object would be a conflict if the first one was applied.
 */
const REPEATABLE: ReadonlySet<string> = new Set(["GET", "HEAD"]);

function requestBytes(request: HttpRequest, url: URL): Uint8Array {
  const { method, headers, body } = request;
  const lines = [
    `${method} ${url.pathname}${url.search} HTTP/1.1`,
    `host: ${url.host}`,
    `user-agent: tunnel/${VERSION}`,
    "accept-encoding: gzip",
  ];
  for (const [name, value] of Object.entries(headers)) {
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new Error(
        `Cannot send the header "${name}": its value has control characters`,
      );
    }
    lines.push(`${name}: ${value}`);
  }
  const content = new TextEncoder().encode(body ?? "");
  if (body !== undefined) lines.push(`content-length: ${content.length}`);
  return joinedBytes([headBytes(lines), content]);
}

function responseOf({ head, body }: HttpAnswer): Response {
  const headers = new Headers();
  for (const line of head.fields.lines) {
    const colon = line.indexOf(":");
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const isPacked = head.fields.list("content-encoding").includes("gzip");
  const plain = body !== null && isPacked
    ? body.pipeThrough(new DecompressionStream("gzip"))
    : body;
  return new Response(plain, { status: head.status, headers });
}
