/**
 * What stands before a real kube-apiserver, so that it can be away, slow or tell
 * lies: servers and agents reach it by this address alone.
 *
 * @module
 */

import type { KubeCluster } from "../peers/kube_cluster.ts";
import { sleep } from "../../tests/support/watch/event_loop.ts";
import { HOME_ADDRESS } from "./network.ts";

/**
 * How requests are answered: truly, not at all, late, or with what servers say
 * that have lost their past (410), their mind (500) or their data (empty).
 */
export type ApiMood = "well" | "away" | "slow" | "gone" | "error" | "empty";

const SLOW_MS = 1_500;

const STATUS = { gone: 410, error: 500 } as const;

/** See the module description. */
export class ApiFront implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #mood: ApiMood = "well";
  /** Ends the watches that are open. */
  #watches = new AbortController();

  private constructor(
    private readonly cluster: KubeCluster,
    private readonly client: Deno.HttpClient,
    credentials: { readonly cert: string; readonly key: string },
  ) {
    this.#server = Deno.serve({
      ...{ hostname: HOME_ADDRESS, port: 0, ...credentials },
      onListen: () => {},
      onError: () => new Response(null, { status: 502 }),
    }, (request) => this.#answer(request));
  }

  static async open(cluster: KubeCluster): Promise<ApiFront> {
    const pair = await cluster.issue("front", {
      ...{ commonName: "front", usage: "server", names: [HOME_ADDRESS] },
    });
    const client = Deno.createHttpClient({
      caCerts: [await Deno.readTextFile(cluster.caFile)],
    });
    return new ApiFront(cluster, client, {
      cert: await Deno.readTextFile(pair.cert),
      key: await Deno.readTextFile(pair.key),
    });
  }

  get url(): string {
    return `https://${HOME_ADDRESS}:${this.#server.addr.port}`;
  }

  /** From now on; watches that are open end. */
  set mood(mood: ApiMood) {
    this.#mood = mood;
    this.#watches.abort(new Error("the front has changed its mood"));
    this.#watches = new AbortController();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.mood = "away";
    await this.#server.shutdown();
    this.client.close();
  }

  async #answer(request: Request): Promise<Response> {
    const mood = this.#mood;
    if (mood === "slow") await sleep(SLOW_MS);
    // The nearest to a connection that is refused which this server can do.
    if (mood === "away") return new Response(null, { status: 503 });
    if (mood === "gone" || mood === "error") return failure(STATUS[mood]);
    const { pathname, search } = new URL(request.url);
    const isRead = request.method === "GET";
    const isWatch = search.includes("watch=");
    if (mood === "empty" && isRead) {
      return isWatch ? nothing() : empty(pathname);
    }
    const body = isRead ? undefined : await request.arrayBuffer();
    const headers = new Headers(request.headers);
    headers.delete("host");
    return await fetch(`${this.cluster.server}${pathname}${search}`, {
      ...{ method: request.method, headers, client: this.client },
      ...body === undefined || body.byteLength === 0 ? {} : { body },
      signal: this.#watches.signal,
    });
  }
}

function failure(code: number): Response {
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", code };
  return Response.json({ ...status, message: "chaos" }, { status: code });
}

/** A list without items; or what there is of one object: nothing. */
function empty(path: string): Response {
  const isObject = /\/(leases|secrets)\/[^/]+$/.test(path);
  if (isObject) return failure(404);
  const metadata = { resourceVersion: "1" };
  return Response.json({ kind: "List", apiVersion: "v1", metadata, items: [] });
}

/** A watch that ends at once, in which nothing happened. */
function nothing(): Response {
  return new Response("", { headers: { "content-type": "application/json" } });
}
