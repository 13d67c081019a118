import { assert, assertEquals } from "@std/assert";
import type { LoginAnswer } from "../../proto/admin/login.ts";
import type { AdminRole } from "../../proto/admin/api.ts";
import { AdminSessions, SESSION_MS } from "./admin_sessions.ts";
import type { HttpPeer } from "./http_port.ts";

const URL_OF = "http://127.0.0.1:8095/v1/session";
const NOBODY = {} as HttpPeer;

/** One process; the next one has the same token. */
class Program {
  now = 1e12;
  token: string | undefined = "a".repeat(64);
  sessions = this.restarted();

  restarted(): AdminSessions {
    return this.sessions = new AdminSessions(
      () => "http://127.0.0.1:8095",
      () => this.token,
      () => this.now,
    );
  }

  /** @returns A cookie. */
  async logIn(role: AdminRole = "operate"): Promise<string> {
    const route = this.sessions.routes.find(({ path }) =>
      path === "/v1/logins"
    )!;
    const { code } = await route.answer({
      url: new URL("http://x/v1/logins"),
      segment: "",
      body: { role },
      who: { role: "operate", name: "uid 0" },
      signal: AbortSignal.abort(),
    }) as LoginAnswer;
    const answer = await this.post(URL_OF, { code });
    return answer.headers.get("set-cookie")!.split(";")[0]!;
  }

  post(url: string, body: unknown, cookie = ""): Promise<Response> {
    const handler = this.sessions.handler(
      () => new Response("others"),
      () => {},
    );
    return Promise.resolve(handler(
      new Request(url, {
        method: "POST",
        headers: { "content-type": "application/json", cookie },
        body: JSON.stringify(body),
      }),
      NOBODY,
    ));
  }

  who(cookie: string) {
    return this.sessions.whoOf(new Request(URL_OF, { headers: { cookie } }));
  }
}

Deno.test("a browser that was let in stays so when the program is restarted", async () => {
  const program = new Program();
  const cookie = await program.logIn("view");
  program.restarted();
  assertEquals(program.who(cookie), { name: "uid 0 (browser)", role: "view" });
  program.now += SESSION_MS;
  assertEquals(program.who(cookie), undefined);
});

Deno.test("another token makes cookies worthless", async () => {
  const program = new Program();
  const cookie = await program.logIn();
  program.token = "b".repeat(64);
  assertEquals(program.who(cookie), undefined);
});

Deno.test("without a token a cookie is good as long as the process", async () => {
  const program = new Program();
  program.token = undefined;
  const cookie = await program.logIn();
  assert(program.who(cookie));
  program.restarted();
  assertEquals(program.who(cookie), undefined);
});

Deno.test("a cookie that was changed, or ended, is nobody's", async () => {
  const program = new Program();
  const cookie = await program.logIn("view");
  const [name, value] = cookie.split("=") as [string, string];
  const [payload, signature] = value.split(".");
  const other = btoa(atob(payload!).replace("view", "operate"))
    .replaceAll("=", "");
  for (
    const text of [
      `${other}.${signature}`,
      `${payload}.`,
      `${payload}`,
      `.${signature}`,
      "",
      "x".repeat(5_000),
    ]
  ) assertEquals(program.who(`${name}=${text}`), undefined, text);
  assert(program.who(cookie));
  await program.post(`${URL_OF}/end`, {}, cookie);
  assertEquals(program.who(cookie), undefined);
});

Deno.test("a code is good once", async () => {
  const program = new Program();
  const answer = await program.post(URL_OF, { code: "none" });
  assertEquals(answer.status, 401);
  await answer.body?.cancel();
});
