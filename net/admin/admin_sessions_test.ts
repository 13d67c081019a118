import { assert, assertEquals, assertMatch } from "@std/assert";
import type { AdminRole, LoginAnswer } from "../../proto/admin/api.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import type { AdminWay, AdminWho } from "./admin_api.ts";
import { AdminSessions, SESSION_MS } from "./admin_sessions.ts";
import type { HttpPeer } from "./http_port.ts";
import { LOGINS_OF_ONE_MAX } from "./logins.ts";

const URL_OF = "http://127.0.0.1:8095/v1/session";
const NOBODY = {} as HttpPeer;
const OPERATOR: AdminWho = {
  role: "operate",
  name: "uid 0",
  way: { kind: "socket", uid: 0 },
};
const VIEWER: AdminWho = {
  role: "view",
  name: "uid 7",
  way: { kind: "socket", uid: 7 },
};

/** One process; the next one has the same token and folder. */
class Program {
  now = 1e12;
  token: string | undefined = "a".repeat(64);
  readonly log = new RecordedLog();
  roleOf: (way: AdminWay) => AdminRole | undefined = () => "operate";
  sessions: AdminSessions;

  constructor(readonly folder?: string) {
    this.sessions = this.restarted();
  }

  get path(): string | undefined {
    return this.folder && `${this.folder}/logins.jsonl`;
  }

  /** The process before may go on beside it. */
  restarted(): AdminSessions {
    return this.sessions = new AdminSessions({
      origin: () => "http://127.0.0.1:8095",
      token: () => this.token,
      path: () => this.path,
      roleOf: (way) => this.roleOf(way),
      log: () => this.log,
      now: () => this.now,
    });
  }

  async code(who = OPERATOR, role?: AdminRole): Promise<string> {
    const route = this.sessions.routes.find(({ path }) =>
      path === "/v1/logins"
    )!;
    const { code } = await route.answer({
      url: new URL("http://x/v1/logins"),
      segment: "",
      body: role === undefined ? {} : { role },
      who,
      signal: AbortSignal.abort(),
    }) as LoginAnswer;
    return code;
  }

  /** @returns A cookie. */
  async logIn(who = OPERATOR, role?: AdminRole): Promise<string> {
    const answer = await this.post(URL_OF, {
      code: await this.code(who, role),
    });
    return answer.headers.get("set-cookie")!.split(";")[0]!;
  }

  async logOut(cookie: string, sessions = this.sessions): Promise<string> {
    const answer = await this.post(`${URL_OF}/end`, {}, cookie, sessions);
    return (await answer.json()).message;
  }

  post(
    url: string,
    body: unknown,
    cookie = "",
    sessions = this.sessions,
  ): Promise<Response> {
    const handler = sessions.handler(() => new Response("others"), () => {});
    return Promise.resolve(handler(
      new Request(url, {
        method: "POST",
        headers: { "content-type": "application/json", cookie },
        body: JSON.stringify(body),
      }),
      NOBODY,
    ));
  }

  role(cookie: string, sessions = this.sessions): AdminRole | undefined {
    return sessions.whoOf(new Request(URL_OF, { headers: { cookie } }))?.role;
  }
}

function scene(name: string, test: (program: Program) => Promise<void>): void {
  Deno.test(name, () => inMemoryFolder((folder) => test(new Program(folder))));
}

scene(
  "a browser that was let in stays so when the program is restarted",
  async (program) => {
    const cookie = await program.logIn(OPERATOR, "view");
    program.restarted();
    assertEquals(program.role(cookie), "view");
    program.now += SESSION_MS;
    assertEquals(program.role(cookie), undefined);
  },
);

scene(
  "a logout lasts, over restarts and whatever viewers do",
  async (program) => {
    const cookie = await program.logIn();
    const before = program.sessions;
    assertEquals(await program.logOut(cookie), "Logged out");
    program.restarted();
    assertEquals(program.role(cookie), undefined);
    for (let at = 0; at < 300; at++) {
      await program.logOut(await program.logIn(VIEWER));
    }
    assertEquals(program.role(cookie), undefined);
    assertEquals(program.role(cookie, before), undefined);
    // A process that takes over and the one before know of each other's.
    const next = await program.logIn();
    assertEquals(program.role(next, before), "operate");
    await program.logOut(next, before);
    assertEquals(program.role(next), undefined);
  },
);

scene(
  "who loses a role loses it in the browser at once, and gives no more than he has",
  async (program) => {
    const [all, look] = [await program.logIn(), await program.logIn(VIEWER)];
    const code = await program.code();
    assertEquals([program.role(all), program.role(look)], ["operate", "view"]);
    program.roleOf = () => "view";
    assertEquals([program.role(all), program.role(look)], ["view", "view"]);
    program.roleOf = () => undefined;
    assertEquals([program.role(all), program.role(look)], [
      undefined,
      undefined,
    ]);
    // A link that was given before is no way around it.
    assertEquals((await program.post(URL_OF, { code })).status, 401);
    await program.code().then(
      () => assert(false),
      ({ status }) => assertEquals(status, 403),
    );
  },
);

scene(
  "viewers push out neither an operator's link nor his login",
  async (program) => {
    const cookie = await program.logIn();
    const code = await program.code();
    for (let at = 0; at < 5 * LOGINS_OF_ONE_MAX; at++) {
      const name = `uid ${at % 9}`;
      await program.code({ ...VIEWER, name });
      await program.logIn({ ...VIEWER, name });
    }
    assertEquals(program.role(cookie), "operate");
    assertEquals((await program.post(URL_OF, { code })).status, 200);
    // Nor what another viewer has, alone.
    const other = await program.logIn({ ...VIEWER, name: "uid 100" });
    for (let at = 0; at < 3 * LOGINS_OF_ONE_MAX; at++) {
      await program.logIn(
        VIEWER,
      );
    }
    assertEquals(program.role(other), "view");
    const { size, mode } = await Deno.stat(program.path!);
    assert(size < 64 * 1024);
    assertEquals(mode! & 0o777, 0o600);
  },
);

scene(
  "another token makes cookies worthless, and the file has none",
  async (program) => {
    const cookie = await program.logIn();
    const text = await Deno.readTextFile(program.path!);
    assert(!text.includes(cookie.split("=")[1]!));
    program.token = "b".repeat(64);
    assertEquals(program.role(cookie), undefined);
  },
);

Deno.test("without a token a cookie is good as long as the process", async () => {
  const program = new Program();
  program.token = undefined;
  const cookie = await program.logIn();
  assertEquals(program.role(cookie), "operate");
  program.restarted();
  assertEquals(program.role(cookie), undefined);
});

scene(
  "a cookie that was changed is nobody's, and ends nobody's",
  async (program) => {
    const cookie = await program.logIn();
    const [name, value] = cookie.split("=") as [string, string];
    for (
      const text of [
        ...["", value.slice(1), `${value}0`, "0".repeat(64), "x".repeat(5_000)],
        value.replace(/^./, (first) => first === "0" ? "1" : "0"),
        "constructor",
      ]
    ) {
      assertEquals(program.role(`${name}=${text}`), undefined, text);
      await program.logOut(`${name}=${text}`);
    }
    assertEquals(program.role(cookie), "operate");
  },
);

scene(
  "a file that is damaged, or that others could write, lets nobody in",
  async (program) => {
    const cookie = await program.logIn();
    const text = await Deno.readTextFile(program.path!);
    await Deno.writeTextFile(program.path!, text.replace("operate", "0perate"));
    program.restarted();
    assertEquals(program.role(cookie), undefined);
    assertMatch(program.log.take().join(), /checksum.*have to log in again/);
    await Deno.writeTextFile(program.path!, text);
    // Two writes of one length in one tick of the clock of files look alike.
    program.restarted();
    assertEquals(program.role(cookie), "operate");
    await Deno.chmod(program.path!, 0o666);
    program.restarted();
    assertEquals(program.role(cookie), undefined);
    // Who logs in anew puts a whole one there.
    await Deno.chmod(program.path!, 0o600);
    await Deno.writeTextFile(program.path!, "");
    program.restarted();
    const next = await program.logIn();
    program.restarted();
    assertEquals(program.role(next), "operate");
  },
);

scene(
  "a disk that takes nothing keeps nobody out, and lets nobody in again",
  async (program) => {
    const kept = await program.logIn();
    // Whatever is put there is longer than nothing.
    const full = `${program.folder}/.unfinished-`;
    const { open } = Deno;
    Deno.open = ((path, options) => {
      if (!String(path).startsWith(full)) return open(path, options);
      const error = new Error("No space left on device");
      throw Object.assign(error, { code: "ENOSPC" });
    }) as typeof open;
    try {
      const cookie = await program.logIn();
      assertEquals(program.role(cookie), "operate");
      assertMatch(program.log.take().join(), /the disk is full.*log in again/);
      assertEquals(await program.logOut(kept), "Logged out");
      assertEquals([program.role(kept), program.role(cookie)], [
        undefined,
        "operate",
      ]);
      program.restarted();
      assertEquals(program.role(kept), undefined);
    } finally {
      Deno.open = open;
    }
  },
);

Deno.test("a code is good once, and for a minute", async () => {
  const program = new Program();
  const tries = [["none", 401], [await program.code(), 200]] as const;
  for (const [code, status] of tries) {
    assertEquals((await program.post(URL_OF, { code })).status, status);
    assertEquals((await program.post(URL_OF, { code })).status, 401);
  }
  const late = await program.code();
  program.now += 60_000;
  assertEquals((await program.post(URL_OF, { code: late })).status, 401);
});
