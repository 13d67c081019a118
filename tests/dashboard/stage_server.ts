/**
 * A server that answers as the admin API does, with thousands of nodes that are
 * not there: what the page does with them is what is tested.
 *
 * As a program: `stage_server.ts [PORT]` prints where it is.
 *
 * @module
 */

import type { AdminRole } from "../../proto/admin/api.ts";
import type { NodeSummary } from "../../proto/admin/node_answer.ts";
import { dashboardAnswer } from "../../admin/server/dashboard.ts";
import { StageData, type StageSize } from "./stage_data.ts";

/** The code that is good for each role, as often as one likes. */
export const STAGE_CODES: ReadonlyMap<string, AdminRole> = new Map<
  string,
  AdminRole
>([["operate1", "operate"], ["view1", "view"]]);

export const STAGE_SIZE: StageSize = { nodes: 5_000, conduits: 10_000 };

/** What was done, as `METHOD path body`. */
export class StageServer implements AsyncDisposable {
  readonly data: StageData;
  readonly done: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(size: StageSize = STAGE_SIZE, port = 0) {
    this.data = new StageData(size);
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port, onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  get port(): number {
    return this.#server.addr.port;
  }

  /** A link as `tunnel dashboard` prints it. */
  link(role: AdminRole = "operate"): string {
    return `http://127.0.0.1:${this.port}/dashboard/#code=${role}1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watchers.forEach((end) => end());
    await this.#server.shutdown();
  }

  readonly #watchers = new Set<() => void>();

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const role = roleOf(request);
    const page = await dashboardAnswer(
      request,
      () => role && { role, name: "stage" },
    );
    if (page !== undefined) return page;
    if (url.pathname === "/v1/session" && request.method === "POST") {
      return logIn((await request.json()).code);
    }
    if (role === undefined) {
      return json({ message: "Nobody is known to ask" }, 401);
    }
    if (url.pathname === "/v1/session") return json({ role, name: "stage" });
    if (request.method === "POST") return this.#do(request, url, role);
    if (url.pathname === "/v1/watch") return this.#watch(request, url);
    return this.#get(url);
  }

  #get({ pathname }: URL): Response {
    const [, , list = "", raw = ""] = pathname.split("/");
    const name = decodeURIComponent(raw);
    const { data } = this;
    const answers: Readonly<Record<string, () => unknown>> = {
      status: () => data.status(),
      nodes: () =>
        name === ""
          ? { nodes: [...data.nodes.values()], total: data.nodes.size }
          : data.node(name),
      conduits: () =>
        name === ""
          ? { conduits: data.top(20_000), total: data.conduits.size }
          : data.conduits.get(name),
      events: () => ({ events: data.events }),
      history: () => data.history(),
      services: () => data.services(),
      discovery: () => data.discovery(),
      certificates: () => data.certificates(),
      audit: () => ({ entries: data.audit() }),
    };
    const answer = Object.hasOwn(answers, list) ? answers[list]!() : undefined;
    return answer === undefined
      ? json({ message: "There is no such thing here any more" }, 404)
      : json(answer);
  }

  async #do(request: Request, url: URL, role: AdminRole): Promise<Response> {
    if (!request.headers.has("x-tunnel-admin")) {
      return json({ message: "X-Tunnel-Admin is missing" }, 403);
    }
    if (role !== "operate") return json({ message: "You may only look" }, 403);
    this.done.push(`${url.pathname} ${await request.text()}`);
    const [, , list, raw = "", action] = url.pathname.split("/");
    const name = decodeURIComponent(raw);
    if (list === "conduits") this.data.conduits.delete(name);
    const node = this.data.nodes.get(name);
    if (list === "nodes" && node !== undefined) {
      this.data.nodes.set(name, changed(node, action));
      this.#touched.add(name);
    }
    return json({ message: `Done: ${action} ${name}` });
  }

  readonly #touched = new Set<string>();

  #watch(request: Request, url: URL): Response {
    const lists = (url.searchParams.get("lists") ?? "").split(",");
    const { data } = this;
    let timer: ReturnType<typeof setInterval> | undefined;
    let end = () => {};
    const stream = new ReadableStream<string>({
      start: (controller) => {
        const send = (name: string, value: unknown) =>
          controller.enqueue(
            `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`,
          );
        end = () => {
          clearInterval(timer);
          this.#watchers.delete(end);
          try {
            controller.close();
          } catch {
            // Its client is gone.
          }
        };
        send("status", data.status());
        if (lists.includes("nodes")) {
          send("nodes", whole([...data.nodes.values()]));
        }
        if (lists.includes("conduits")) send("conduits", whole(data.top(200)));
        if (lists.includes("events")) send("events", data.events);
        timer = setInterval(() => this.#tell(lists, send), 1_000);
      },
      cancel: () => end(),
    });
    this.#watchers.add(end);
    request.signal.addEventListener("abort", () => end());
    return new Response(stream.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream" },
    });
  }

  #tell(
    lists: readonly string[],
    send: (name: string, value: unknown) => void,
  ): void {
    const { data } = this;
    const moved = data.step();
    send("status", data.status());
    if (lists.includes("nodes")) {
      const names = [...moved.nodes, ...this.#touched];
      this.#touched.clear();
      const changed = names.map((name) => data.nodes.get(name));
      send("nodes", { isWhole: false, changed, gone: [] });
    }
    if (lists.includes("conduits")) {
      const changed = moved.conduits.map((id) => data.conduits.get(id));
      send("conduits", { isWhole: false, changed, gone: [] });
    }
  }
}

function changed(node: NodeSummary, action: string | undefined): NodeSummary {
  const none = { links: 0, toTargetRate: 0, fromTargetRate: 0, servers: [] };
  switch (action) {
    case "revoke":
      return { ...node, ...none, state: "revoked" };
    case "approve":
      return { ...node, ...none, state: "offline" };
    default:
      return node;
  }
}

function whole(changed: readonly unknown[]): unknown {
  return { isWhole: true, changed, gone: [] };
}

function logIn(code: string): Response {
  const role = STAGE_CODES.get(code);
  if (role === undefined) {
    return json({ message: "The code is not known or was used" }, 401);
  }
  const response = json({ role, name: "stage" });
  response.headers.set(
    "set-cookie",
    `stage=${role}; Path=/; HttpOnly; SameSite=Strict`,
  );
  return response;
}

function roleOf(request: Request): AdminRole | undefined {
  const cookie = request.headers.get("cookie") ?? "";
  const role = /(?:^|; )stage=(\w+)/.exec(cookie)?.[1];
  return role === "operate" || role === "view" ? role : undefined;
}

function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { "content-type": "application/json" },
  });
}

if (import.meta.main) {
  const stage = new StageServer(STAGE_SIZE, Number(Deno.args[0] ?? 0));
  // deno-lint-ignore no-console -- it is how one finds it.
  console.log(stage.link());
}
