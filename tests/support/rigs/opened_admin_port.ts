/**
 * An admin port in this process with two routes, one to look and one to do, over
 * loopback and a socket in a folder of its own.
 *
 * @module
 */

import { readToEnd } from "../peers/sockets.ts";
import { RecordedLog } from "../watch/recorded_log.ts";
import type { AdminRoute } from "../../../net/admin/admin_api.ts";
import { plain } from "../../../net/admin/http_endpoints.ts";
import {
  type AdminAccess,
  AdminPort,
  apiBeside,
} from "../../../net/listen/admin_port.ts";

export const ADMIN_ROUTES: readonly AdminRoute[] = [
  {
    method: "GET",
    path: "/v1/who",
    role: "view",
    answer: ({ who: { role, name } }) => ({ role, name }),
  },
  {
    method: "POST",
    path: "/v1/do",
    role: "operate",
    answer: ({ who }) => ({ did: who.name }),
  },
];

interface Answer {
  readonly status: number;
  readonly head: string;
  // deno-lint-ignore no-explicit-any -- JSON, of which tests know the shape
  readonly said: any;
}

/** See the module description. */
export class OpenedAdminPort implements AsyncDisposable {
  readonly log = new RecordedLog();
  readonly did: string[] = [];
  /** Limits that were reached, with their scopes. */
  readonly reached = new Set<string>();
  readonly port: AdminPort;

  constructor(
    access: AdminAccess = {},
    readonly folder: string = Deno.makeTempDirSync(),
    routes: readonly AdminRoute[] = ADMIN_ROUTES,
  ) {
    this.port = new AdminPort({
      address: { hostname: "127.0.0.1", port: 0 },
      access: { stateDirectory: this.folder, ...access },
      log: this.log,
      reached: (limit, scope) => this.reached.add(`${limit} ${scope}`),
      handler: apiBeside(
        routes,
        () => () => plain(200, "metrics"),
        ({ who, path, status }) =>
          this.did.push(`${who.name} ${path} ${status}`),
      ),
    });
  }

  static async open(access: AdminAccess = {}): Promise<OpenedAdminPort> {
    return await new OpenedAdminPort(access).opened();
  }

  async opened(): Promise<this> {
    await this.port.open();
    return this;
  }

  get host(): string {
    return this.port.address;
  }

  token(file = "admin.token"): string {
    return Deno.readTextFileSync(`${this.folder}/${file}`).trim();
  }

  /** By hand: fetch() does not send such headers. */
  async ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body = "",
    at?: Deno.UnixConnectOptions,
  ): Promise<Answer> {
    const { port } = this.port;
    const conn = at === undefined
      ? await Deno.connect({ hostname: "127.0.0.1", port })
      : await Deno.connect(at);
    const all = { host: this.host, ...headers };
    const lines = Object.entries(all).map(([name, value]) =>
      `${name}: ${value}\r\n`
    );
    const length = body === "" ? "" : `content-length: ${body.length}\r\n`;
    const text = `${method} ${path} HTTP/1.0\r\n${lines.join("")}${length}\r\n`;
    await conn.write(new TextEncoder().encode(text + body));
    const answer = new TextDecoder().decode(await readToEnd(conn));
    conn.close();
    const [head = "", said = ""] = answer.split("\r\n\r\n");
    const status = Number(head.split(" ")[1]);
    const json = said.startsWith("{") ? JSON.parse(said) : said;
    return { status, head, said: json };
  }

  onSocket(method: string, path: string): Promise<Answer> {
    return this.ask(method, path, {}, "", {
      transport: "unix",
      path: `${this.folder}/admin.sock`,
    });
  }

  bearer(file?: string): { authorization: string; "x-tunnel-admin": string } {
    return {
      authorization: `Bearer ${this.token(file)}`,
      "x-tunnel-admin": "1",
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.port.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}
