/**
 * The dashboard and the admin API of a server with thousands of nodes that are
 * not there: what the page does with them is what is tested.
 *
 * As a program: `stage_server.ts [PORT]` prints where it is.
 *
 * @module
 */

import { withDashboard } from "../../admin/server/dashboard.ts";
import {
  adminApi,
  type AdminDoor,
  AdminFailure,
  type AdminRequest,
  type AdminRoute,
  getRoute,
  postRoute,
} from "../../net/admin/admin_api.ts";
import { eventAnswer } from "../../net/admin/event_stream.ts";
import type { HttpPeer } from "../../net/admin/http_port.ts";
import { ADMIN_PATHS, type AdminRole } from "../../proto/admin/api.ts";
import type { NodeSummary } from "../../proto/admin/node_answer.ts";
import { sleep } from "../support/watch/event_loop.ts";
import { StageData } from "./stage_data.ts";

/** Time between two ticks, as of a real server. */
const TICK_MS = 1_000;

export class StageServer implements AsyncDisposable {
  readonly data = new StageData();
  /** What was done, as `PATH BODY`. */
  readonly done: string[] = [];
  /** Of each watch: nodes that were changed, and are not told it yet. */
  readonly #touched = new Set<Set<string>>();
  readonly #over = new AbortController();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(port = 0) {
    const api = adminApi([...this.#routes()], { who: byCookie });
    const answer = withDashboard(byCookie, api);
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port, onListen: () => {} },
      (request) => isLogin(request) ? logIn(request) : answer(request, NOBODY),
    );
  }

  get port(): number {
    return this.#server.addr.port;
  }

  /** A link as `tunnel dashboard` prints it, good as often as one likes. */
  link(role: AdminRole = "operate"): string {
    return `http://127.0.0.1:${this.port}/dashboard/#code=${role}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await this.#server.shutdown();
  }

  *#routes(): Iterable<AdminRoute> {
    const { data } = this;
    const all: Readonly<Record<string, () => unknown>> = {
      status: () => data.status(),
      nodes: () => ({ nodes: data.nodes.values(), total: data.nodes.size }),
      conduits: () => ({
        conduits: data.top(Infinity),
        total: data.conduits.size,
      }),
      events: () => ({ events: data.events }),
      history: () => data.history(),
      services: () => data.services(),
      discovery: () => data.discovery(),
      certificates: () => data.certificates(),
      audit: () => ({ entries: data.audit() }),
    };
    for (const [list, answer] of Object.entries(all)) {
      yield getRoute(`/v1/${list}`, answer);
    }
    yield getRoute(ADMIN_PATHS.session, ({ who }) => who);
    yield getRoute(ADMIN_PATHS.watch, (request) => this.#watch(request));
    yield getRoute(
      "/v1/nodes/:name",
      ({ segment }) => thereIs(data.node(segment)),
    );
    yield getRoute(
      "/v1/conduits/:id",
      ({ segment }) => thereIs(data.conduits.get(segment)),
    );
    for (const action of ["revoke", "approve", "drain"]) {
      yield postRoute(`/v1/nodes/:name/${action}`, (request) => {
        this.#change(request.segment, action);
        return this.#did(request, action);
      });
    }
    yield postRoute("/v1/conduits/:id/kill", (request) => {
      data.conduits.delete(request.segment);
      return this.#did(request, "kill");
    });
  }

  #did({ url, body, segment }: AdminRequest, action: string): unknown {
    this.done.push(`${url.pathname} ${JSON.stringify(body)}`);
    return { message: `Done: ${action} ${segment}` };
  }

  #change(name: string, action: string): void {
    const node = this.data.nodes.get(name);
    if (node === undefined || action === "drain") return;
    const state = action === "revoke" ? "revoked" : "offline";
    const none: Partial<NodeSummary> = { links: 0, toTargetRate: 0 };
    this.data.nodes.set(name, { ...node, ...none, state });
    for (const one of this.#touched) one.add(name);
  }

  #watch({ url, signal }: AdminRequest): Response {
    const lists = (url.searchParams.get("lists") ?? "").split(",");
    const { data } = this;
    let isWhole = true;
    // One page may be gone, and its watch not yet, when another one looks.
    const mine = new Set<string>();
    this.#touched.add(mine);
    signal.addEventListener("abort", () => this.#touched.delete(mine));
    const next = async () => {
      if (!isWhole) await sleep(TICK_MS);
      const moved = isWhole
        ? { nodes: [...data.nodes.values()], conduits: data.top(200) }
        : data.step();
      const touched = [...mine].map((name) => data.nodes.get(name)!);
      mine.clear();
      const changes = {
        nodes: { isWhole, changed: [...moved.nodes, ...touched], gone: [] },
        conduits: { isWhole, changed: moved.conduits, gone: [] },
        ...(isWhole && { events: data.events }),
      };
      isWhole = false;
      const told = Object.entries(changes).filter(([list]) =>
        lists.includes(list)
      );
      return [["status", data.status()] as const, ...told]
        .map(([name, data]) => ({ name, data }));
    };
    return eventAnswer(next, AbortSignal.any([signal, this.#over.signal]));
  }
}

const NOBODY = {} as HttpPeer;

function thereIs<T>(found: T | undefined): T {
  if (found !== undefined) return found;
  throw new AdminFailure(404, { message: "There is no such thing here" });
}

function isLogin({ method, url }: Request): boolean {
  return method === "POST" && new URL(url).pathname === ADMIN_PATHS.session;
}

/** A code is the role that one gets. */
async function logIn(request: Request): Promise<Response> {
  const { code } = await request.json();
  if (code !== "operate" && code !== "view") {
    const message = "The code is not known or was used";
    return Response.json({ message }, { status: 401 });
  }
  const cookie = `stage=${code}; Path=/; HttpOnly; SameSite=Strict`;
  return Response.json({}, { headers: { "set-cookie": cookie } });
}

const byCookie: AdminDoor = ({ headers }) => {
  const cookie = headers.get("cookie") ?? "";
  const role = /(?:^|; )stage=(operate|view)/.exec(cookie)?.[1];
  if (role !== undefined) return { role: role as AdminRole, name: "stage" };
  throw new AdminFailure(401, { message: "Nobody is known to ask" });
};

if (import.meta.main) {
  const stage = new StageServer(Number(Deno.args[0] ?? 0));
  // deno-lint-ignore no-console -- it is how one finds it.
  console.log(stage.link());
}
