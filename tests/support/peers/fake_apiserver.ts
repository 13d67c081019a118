/**
 * A Kubernetes API server as far as clients can tell, on loopback, with faults
 * on order: it keeps objects and versions, lists in pages, watches, and does
 * what a test says to the next request or to a watch that is open.
 *
 * @module
 */

import {
  KubernetesClient,
  type KubernetesClientOptions,
} from "../../../neighbours/kubernetes/client.ts";
import type {
  KubernetesObject,
  ObjectMeta,
  TokenReview,
} from "../../../neighbours/kubernetes/objects.ts";
import type { Timers } from "../../../proto/sync/clock.ts";

/** A request as it came. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string;
  readonly body: unknown;
}

/** What is done to a request instead of answering it. */
export type Fault = (seen: SeenRequest) => Response | Promise<Response>;

/** An open watch, in the test's hands. */
export interface FakeWatch {
  readonly collection: string;
  readonly query: URLSearchParams;
  send(type: string, object: unknown): void;
  /** Bytes as they are. */
  sendRaw(text: string): void;
  /** The end as after `timeoutSeconds`. */
  end(): void;
  /** The connection breaks. */
  cut(): void;
}

/** See the module description. */
export class FakeApiServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** What a TokenReview is answered. */
  onTokenReview: (
    spec: TokenReview["spec"],
  ) => TokenReview["status"] | Promise<TokenReview["status"]> = () => ({});
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #objects = new Map<string, KubernetesObject>();
  readonly #faults: Fault[] = [];
  readonly #watches = new Set<FakeWatch>();
  readonly #unclaimed: FakeWatch[] = [];
  readonly #waiting: ((watch: FakeWatch) => void)[] = [];
  #version = 100;
  #isMute = false;

  private constructor(tls: { cert: string; key: string } | undefined) {
    this.#server = Deno.serve({
      hostname: "127.0.0.1",
      port: 0,
      onListen() {},
      // Only of bodies that a test cuts: without this they would be printed.
      onError: (error) => failure(500, "InternalError", String(error)),
      ...tls,
    }, (request) => this.#serve(request));
  }

  /** @param tls A certificate and its key; without them it speaks plain HTTP. */
  static start(tls?: { cert: string; key: string }): FakeApiServer {
    return new FakeApiServer(tls);
  }

  get port(): number {
    return this.#server.addr.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What was asked so far, as `METHOD path`. */
  get log(): string[] {
    return this.requests.map(({ method, path, query }) =>
      `${query.has("watch") ? "WATCH" : method} ${path}`
    );
  }

  /** Creates or changes an object, as if somebody else had. */
  put(collection: string, object: KubernetesObject): KubernetesObject {
    const path = `${collection}/${object.metadata.name}`;
    const isNew = !this.#objects.has(path);
    const stored = this.#store(path, object);
    this.#announce(collection, isNew ? "ADDED" : "MODIFIED", stored);
    return stored;
  }

  /** Deletes an object, as if somebody else had. */
  remove(collection: string, name: string): void {
    const path = `${collection}/${name}`;
    const object = this.#objects.get(path)!;
    this.#objects.delete(path);
    this.#announce(collection, "DELETED", this.#versioned(object));
  }

  /** What `act` does is told to no watch, as a faulty server would. */
  mute(act: () => void): void {
    this.#isMute = true;
    act();
    this.#isMute = false;
  }

  find(path: string): KubernetesObject | undefined {
    return this.#objects.get(path);
  }

  /** The next requests are for these, in order. */
  failNext(...faults: readonly Fault[]): void {
    this.#faults.push(...faults);
  }

  /** The next watch that somebody opens, or one that nobody asked for yet. */
  nextWatch(): Promise<FakeWatch> {
    const unclaimed = this.#unclaimed.shift();
    if (unclaimed !== undefined) return Promise.resolve(unclaimed);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const watch of [...this.#watches]) watch.end();
    await this.#server.shutdown();
  }

  async #serve(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const text = await request.text();
    const seen: SeenRequest = {
      method: request.method,
      path: pathname,
      query: searchParams,
      authorization: request.headers.get("authorization") ?? "",
      body: text === "" ? undefined : JSON.parse(text),
    };
    this.requests.push(seen);
    const fault = this.#faults.shift();
    if (fault !== undefined) return await fault(seen);
    return await this.#answer(seen);
  }

  #answer(seen: SeenRequest): Response | Promise<Response> {
    const { method, path, query } = seen;
    const object = seen.body as KubernetesObject;
    if (path.endsWith("/tokenreviews")) return this.#review(seen);
    if (query.has("watch")) return this.#watch(path, query);
    switch (method) {
      case "GET": {
        const found = this.#objects.get(path);
        if (found !== undefined) return Response.json(found);
        if (isItem(path)) return failure(404, "NotFound", "not found");
        return this.#list(path, query);
      }
      case "POST": {
        const item = `${path}/${object.metadata.name}`;
        if (this.#objects.has(item)) {
          return failure(409, "AlreadyExists", "already exists");
        }
        return Response.json(this.put(path, object), { status: 201 });
      }
      case "PUT": {
        // Of an approval the whole object is taken, which is more than is.
        const item = path.replace(/\/approval$/, "");
        const collection = item.slice(0, item.lastIndexOf("/"));
        return this.#conflict(item, object.metadata.resourceVersion) ??
          Response.json(this.put(collection, object));
      }
      case "DELETE": {
        const { preconditions } = seen.body as {
          preconditions?: ObjectMeta;
        };
        const conflict = this.#conflict(path, preconditions?.resourceVersion);
        if (conflict !== undefined) return conflict;
        const cut = path.lastIndexOf("/");
        this.remove(path.slice(0, cut), path.slice(cut + 1));
        return Response.json({ kind: "Status", status: "Success" });
      }
    }
    return failure(405, "MethodNotAllowed", method);
  }

  #conflict(path: string, version: string | undefined): Response | undefined {
    const found = this.#objects.get(path);
    if (found === undefined) return failure(404, "NotFound", "not found");
    if (version === undefined || found.metadata.resourceVersion === version) {
      return undefined;
    }
    return failure(409, "Conflict", "the object has been modified");
  }

  async #review({ body }: SeenRequest): Promise<Response> {
    const review = body as TokenReview;
    const status = await this.onTokenReview(review.spec);
    return Response.json({ ...review, status }, { status: 201 });
  }

  #list(collection: string, query: URLSearchParams): Response {
    const all = [...this.#objects].flatMap(([path, object]) =>
      path.startsWith(`${collection}/`) ? [object] : []
    );
    const begin = Number(query.get("continue") ?? 0);
    const limit = Number(query.get("limit") ?? all.length);
    const end = begin + limit;
    return Response.json({
      kind: "List",
      metadata: {
        resourceVersion: `${this.#version}`,
        ...end < all.length ? { continue: `${end}` } : {},
      },
      items: all.slice(begin, end),
    });
  }

  #watch(collection: string, query: URLSearchParams): Response {
    const encoder = new TextEncoder();
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const forget = () => void this.#watches.delete(watch);
    const body = new ReadableStream<Uint8Array>({
      start: (given) => void (controller = given),
      cancel: forget,
    });
    const sendRaw = (text: string) => controller.enqueue(encoder.encode(text));
    const watch: FakeWatch = {
      collection,
      query,
      sendRaw,
      send: (type, object) => sendRaw(`${JSON.stringify({ type, object })}\n`),
      end: () => {
        forget();
        controller.close();
      },
      cut: () => {
        forget();
        controller.error(new Error("cut"));
      },
    };
    this.#watches.add(watch);
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) waiting(watch);
    else this.#unclaimed.push(watch);
    return new Response(body);
  }

  #store(path: string, object: KubernetesObject): KubernetesObject {
    const stored = this.#versioned(object);
    this.#objects.set(path, stored);
    return stored;
  }

  #versioned(object: KubernetesObject): KubernetesObject {
    const resourceVersion = `${++this.#version}`;
    return { ...object, metadata: { ...object.metadata, resourceVersion } };
  }

  #announce(collection: string, type: string, object: KubernetesObject): void {
    if (this.#isMute) return;
    for (const watch of this.#watches) {
      if (watch.collection === collection) watch.send(type, object);
    }
  }
}

/** A client that shows no credentials, and whose backoff is never drawn. */
export function plainClient(
  url: string,
  timers: Timers,
  rest: Partial<KubernetesClientOptions> = {},
): KubernetesClient {
  return new KubernetesClient({
    access: () => ({
      server: url,
      namespace: "default",
      authority: () => undefined,
      credential: () => Promise.resolve({}),
      rejected: () => {},
    }),
    timers,
    random: () => 0,
    ...rest,
  });
}

/** An answer in the API's form for what went wrong. */
export function failure(
  code: number,
  reason: string,
  message: string,
  headers: Record<string, string> = {},
): Response {
  const status = { kind: "Status", status: "Failure", code, reason, message };
  return Response.json(status, { status: code, headers });
}

/** Whether a path names one object, and not a collection. */
function isItem(path: string): boolean {
  const inGroup = path.replace(/^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)/, "");
  return inGroup.replace(/^\/namespaces\/[^/]+(?=\/)/, "").split("/").length >
    2;
}
