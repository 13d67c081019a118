/**
 * HTTP backends that say who they are, and a client that says to which host it
 * talks.
 *
 * @module
 */

const HEALTH_PATH = "/health";

/** See the module description. */
export class HttpBackends implements AsyncDisposable {
  readonly #servers = new Map<string, Deno.HttpServer<Deno.NetAddr>>();
  readonly #ill = new Set<string>();

  private constructor() {}

  /** One of each name; each answers with it. */
  static start(...names: readonly string[]): HttpBackends {
    const backends = new HttpBackends();
    for (const name of names) backends.#start(name);
    return backends;
  }

  /** `ip:port`. */
  address(name: string): string {
    const { addr } = this.#servers.get(name)!;
    return `${addr.hostname}:${addr.port}`;
  }

  /** What it answers when it is asked for `/health`. */
  setHealth(name: string, isWell: boolean): void {
    if (isWell) this.#ill.delete(name);
    else this.#ill.add(name);
  }

  /** What a WebSocket sends back. */
  async echoOf(url: string, text: string): Promise<string> {
    const socket = new WebSocket(url);
    try {
      return await new Promise((resolve, reject) => {
        socket.onopen = () => socket.send(text);
        socket.onmessage = ({ data }) => resolve(String(data));
        socket.onerror = () => reject(new Error(`no WebSocket at ${url}`));
      });
    } finally {
      await new Promise((resolve) => {
        socket.onclose = resolve;
        socket.close();
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#servers.values()].map((one) => one.shutdown()));
  }

  #start(name: string): void {
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    const server = Deno.serve(options, (request) => {
      if (request.headers.get("upgrade") === "websocket") return echo(request);
      const isHealth = new URL(request.url).pathname === HEALTH_PATH;
      const status = isHealth && this.#ill.has(name) ? 500 : 200;
      return new Response(name, { status });
    });
    this.#servers.set(name, server);
  }
}

function echo(request: Request): Response {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onmessage = ({ data }) => socket.send(data);
  return response;
}

/** What is asked for. */
export interface HttpRequest {
  readonly path: string;
  readonly host?: string;
  /** One more, as it is written. */
  readonly header?: string;
}

/** @returns The body of a 200, the status of anything else. */
export async function httpGet(
  port: number,
  { path, host = "localhost", header }: HttpRequest,
): Promise<string> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    ...header === undefined ? [] : [header],
    "Connection: close",
  ];
  await conn.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`));
  const text = await new Response(conn.readable).text();
  const [, status = ""] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? [];
  return status === "200" ? text.split("\r\n\r\n")[1]!.trim() : status;
}
