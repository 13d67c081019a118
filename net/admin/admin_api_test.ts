import { assertEquals } from "@std/assert";
import { ScriptedStream } from "../../tests/support/memory/scripted_stream.ts";
import {
  type AdminAction,
  adminApi,
  AdminFailure,
  type AdminRoute,
  type AdminWho,
} from "./admin_api.ts";

const ROUTES: readonly AdminRoute[] = [
  {
    method: "GET",
    path: "/v1/nodes",
    role: "view",
    answer: ({ who }) => ({ nodes: ["a", "b"].values(), who: who.name }),
  },
  {
    method: "GET",
    path: "/v1/nodes/:name",
    role: "view",
    answer: ({ segment }) => ({ segment }),
  },
  {
    method: "GET",
    path: "/v1/nodes/all",
    role: "view",
    answer: () => ({ exact: true }),
  },
  {
    method: "POST",
    path: "/v1/nodes/:name/drain",
    role: "operate",
    answer({ segment, body }) {
      if (segment === "gone") {
        throw new AdminFailure(404, { message: "There is no node gone" });
      }
      return { segment, body };
    },
  },
];

type Refusal = readonly [
  who: AdminWho,
  method: string,
  path: string,
  body: string | undefined,
  type: string,
  status: number,
];

const VIEWER: AdminWho = { role: "view", name: "alice" };
const OPERATOR: AdminWho = { role: "operate", name: "root" };

async function ask(
  who: AdminWho | AdminFailure,
  method: string,
  path: string,
  body?: string,
  type = "application/json",
) {
  const done: AdminAction[] = [];
  const api = adminApi(ROUTES, {
    who() {
      if (who instanceof AdminFailure) throw who;
      return who;
    },
    did: (action) => done.push(action),
  });
  const request = new Request(`http://127.0.0.1:8095${path}`, {
    method,
    ...(body === undefined ? {} : { body, headers: { "content-type": type } }),
  });
  const response = await api(request, new ScriptedStream());
  return { status: response.status, said: await response.json(), done };
}

Deno.test("a path is answered as it is written, decoded, and in full", async () => {
  const list = await ask(VIEWER, "GET", "/v1/nodes?limit=2");
  assertEquals(list.said, { nodes: ["a", "b"], who: "alice" });
  const one = await ask(VIEWER, "GET", "/v1/nodes/a%2Fb%20c");
  assertEquals(one.said, { segment: "a/b c" });
  const exact = await ask(VIEWER, "GET", "/v1/nodes/all");
  assertEquals(exact.said, { exact: true });
});

Deno.test("GET /v1 says what there is", async () => {
  const { said } = await ask(VIEWER, "GET", "/v1");
  assertEquals(said.version, 1);
  assertEquals(
    said.paths,
    ROUTES.map(({ method, path, role }) => ({
      method,
      path,
      role,
    })),
  );
});

Deno.test("what is not served, or not so, is refused with the status for it", async () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly Refusal[] = [
    [VIEWER,   "GET",  "/v1/nothing",         undefined, "",                 404],
    [VIEWER,   "GET",  "/v1/nodes/a/b",       undefined, "",                 404],
    [VIEWER,   "GET",  "/v1/nodes/%ff",       undefined, "",                 400],
    [VIEWER,   "POST", "/v1/nodes",           "{}",      "application/json", 405],
    [OPERATOR, "PUT",  "/v1/nodes",           "{}",      "application/json", 405],
    [VIEWER,   "POST", "/v1/nodes/a/drain",   "{}",      "application/json", 403],
    [OPERATOR, "POST", "/v1/nodes/a/drain",   "{}",      "text/plain",       415],
    [OPERATOR, "POST", "/v1/nodes/a/drain",   "{",       "application/json", 400],
    [OPERATOR, "POST", "/v1/nodes/a/drain",   "null",    "application/json", 400],
    [OPERATOR, "POST", "/v1/nodes/a/drain",   "[]",      "application/json", 400],
    [OPERATOR, "POST", "/v1/nodes/gone/drain", "{}",     "application/json", 404],
    [OPERATOR, "POST", "/v1/nodes/a/drain",   "{}",      "application/json; charset=utf-8", 200],
  ];
  for (const [who, method, path, body, type, status] of cases) {
    const answer = await ask(who, method, path, body, type);
    const what = `${method} ${path} ${body} ${type}`;
    assertEquals(answer.status, status, what);
    if (status !== 200) {
      assertEquals(typeof answer.said.message, "string", what);
    }
  }
});

Deno.test("who is not known is told so, whatever is asked for", async () => {
  const nobody = new AdminFailure(401, { code: "X", message: "Who are you" });
  for (const path of ["/v1/nodes", "/v1/nothing"]) {
    const { status, said, done } = await ask(nobody, "POST", path, "{}");
    assertEquals([status, said], [401, { code: "X", message: "Who are you" }]);
    assertEquals(done, []);
  }
});

Deno.test("what is done is written down with who did it, also when it is refused", async () => {
  const path = "/v1/nodes/a/drain";
  const good = await ask(OPERATOR, "POST", path);
  assertEquals(good.said, { segment: "a", body: {} });
  assertEquals(good.done, [{ who: OPERATOR, path, status: 200 }]);
  const bad = await ask(VIEWER, "POST", path);
  assertEquals(bad.done, [{
    who: VIEWER,
    path,
    status: 403,
    problem:
      'alice may look here, and not do this: it takes the role "operate"',
  }]);
  assertEquals((await ask(VIEWER, "GET", "/v1/nodes")).done, []);
});
