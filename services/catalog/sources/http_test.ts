import { assertEquals, assertStringIncludes } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedSink } from "../../../tests/support/watch/recorded_sink.ts";
import { DOCUMENT_BYTES_MAX } from "./document/catalog_document.ts";
import { HttpSource, POLL_INTERVAL_MS, POLL_TIMEOUT_MS } from "./http.ts";

const WEB = "services:\n- {name: web, ports: [{port: 80}]}\n";
const DB = "services:\n- {name: db, ports: [{port: 5432}]}\n";

/** A source, a server that answers what a test says, and time between. */
class Rig implements AsyncDisposable {
  readonly sink = new RecordedSink();
  readonly requests: Request[] = [];
  readonly timers = new FakeTimers();
  answer: (request: Request) => Response;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly source: HttpSource;
  readonly delays: number[] = [];
  #waiting = Promise.withResolvers<void>();

  private constructor(answer: (request: Request) => Response) {
    this.answer = answer;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      (request) => {
        this.requests.push(request);
        return this.answer(request);
      },
    );
    this.timers.onSet = (delayMs) => {
      // The other timer is the limit on a question.
      if (delayMs === POLL_TIMEOUT_MS) return;
      this.delays.push(delayMs);
      this.#waiting.resolve();
    };
    this.source = new HttpSource({
      url: `http://user:secret@127.0.0.1:${this.#server.addr.port}/c?key=1`,
      timers: this.timers,
      random: () => 0.5,
    });
  }

  /** Resolves when the first answer was dealt with. */
  static async open(answer: (request: Request) => Response): Promise<Rig> {
    const rig = new Rig(answer);
    rig.source.start(rig.sink);
    await rig.#waiting.promise;
    return rig;
  }

  get names(): string[] {
    return [...this.sink.entries.services.keys()];
  }

  /** The next question, and what comes of it. */
  async turn(): Promise<void> {
    this.#waiting = Promise.withResolvers();
    this.timers.advance(this.delays.at(-1)!);
    await this.#waiting.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
    await this.#server.shutdown();
    assertEquals(this.timers.pendingCount, 0, "a timer is left");
  }
}

/** A document by a name, told only to who does not have it. */
function tagged(text: string, etag: string) {
  return (request: Request) =>
    request.headers.get("if-none-match") === etag
      ? new Response(null, { status: 304 })
      : new Response(text, { headers: { etag } });
}

Deno.test("a server is asked only for what is new", async () => {
  await using rig = await Rig.open(tagged(WEB, '"1"'));
  assertEquals(rig.names, ["default/web"]);
  await rig.turn();
  assertEquals(rig.requests[1]!.headers.get("if-none-match"), '"1"');
  assertEquals(rig.sink.calls, ["set", "synced", "synced"]);
  rig.answer = tagged(DB, '"2"');
  await rig.turn();
  assertEquals(rig.names, ["default/db"]);
  assertEquals(rig.delays[0], POLL_INTERVAL_MS);
});

Deno.test("without an ETag the document itself says whether it is new", async () => {
  await using rig = await Rig.open(() => new Response(WEB));
  await rig.turn();
  assertEquals(rig.sink.calls, ["set", "synced", "synced"]);
});

Deno.test("whatever else is answered changes nothing, and is said", async () => {
  await using rig = await Rig.open(tagged(WEB, '"1"'));
  const bad: readonly [() => Response, string][] = [
    [() => new Response("no", { status: 500 }), "it answered 500"],
    [() => new Response(""), "wanted a map of services"],
    [() => new Response("services: [{}]"), "line 1: services[0].name"],
    [() => new Response("<html>\n"), "wanted a map of services"],
  ];
  for (const [answer, problem] of bad) {
    rig.answer = answer;
    await rig.turn();
    assertStringIncludes(rig.sink.calls.at(-1)!, problem);
    assertEquals(rig.names, ["default/web"]);
  }
  assertStringIncludes(rig.sink.calls.at(-1)!, "Cannot use http://127.0.0.1:");
  assertEquals(/secret|key=/.test(rig.sink.calls.join()), false);
  rig.answer = tagged(WEB, '"1"');
  await rig.turn();
  assertEquals(rig.sink.calls.at(-1), "synced");
  assertEquals(rig.delays.at(-1), POLL_INTERVAL_MS);
});

Deno.test("failures are repeated after more and more, or when the server says", async () => {
  await using rig = await Rig.open(() => new Response("", { status: 503 }));
  await rig.turn();
  await rig.turn();
  assertEquals(rig.delays.map((ms) => ms < 200), [true, true, true]);
  assertEquals(rig.delays[2]! > rig.delays[0]!, true);
  const headers = { "retry-after": "7" };
  rig.answer = () => new Response("", { status: 429, headers });
  await rig.turn();
  assertEquals(rig.delays.at(-1), 7_000);
  headers["retry-after"] = "86400";
  await rig.turn();
  assertEquals(rig.delays.at(-1), 60_000);
  rig.answer = () => new Response(WEB);
  await rig.turn();
  rig.answer = () => new Response("", { status: 500 });
  await rig.turn();
  assertEquals(rig.delays.at(-1), rig.delays[0]);
});

Deno.test("a document without end is not read to its end", async () => {
  let sent = 0;
  const chunk = new Uint8Array(4 * 1024 * 1024).fill(0x20);
  await using rig = await Rig.open(() =>
    new Response(
      new ReadableStream({
        pull(controller) {
          sent += chunk.length;
          controller.enqueue(chunk);
        },
      }),
    )
  );
  assertStringIncludes(rig.sink.calls.at(-1)!, "it is longer than");
  assertEquals(sent < 2 * DOCUMENT_BYTES_MAX, true);
});

Deno.test("another document under the same ETag is found, and counted as missed", async () => {
  await using rig = await Rig.open(tagged(WEB, '"1"'));
  await rig.source.reconcile();
  assertEquals(rig.sink.drift, 0);
  rig.answer = tagged(DB, '"1"');
  await rig.turn();
  assertEquals(rig.names, ["default/web"]);
  await rig.source.reconcile();
  assertEquals(rig.names, ["default/db"]);
  assertEquals(rig.sink.drift, 2);
  rig.answer = tagged(WEB, '"2"');
  await rig.source.reconcile();
  assertEquals([rig.names, rig.sink.drift], [["default/web"], 2]);
});

Deno.test("a server is believed by the CA that is given, and shown a token", async () => {
  const { ca, otherCa, server: pair } = await certificates();
  const seen: (string | null)[] = [];
  await using server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    cert: pair.cert,
    key: pair.key,
    onListen() {},
  }, (request) => {
    const shown = request.headers.get("authorization");
    seen.push(shown);
    return shown === "Bearer new"
      ? new Response(WEB)
      : new Response(null, { status: 401 });
  });
  let authority = otherCa;
  let token = "old";
  let rejections = 0;
  const timers = new FakeTimers();
  const sink = new RecordedSink();
  const source = new HttpSource({
    url: `https://127.0.0.1:${server.addr.port}/`,
    timers,
    random: () => .5,
    access: {
      authority: () => authority,
      token: () => Promise.resolve(token),
      rejected: () => rejections++,
    },
  });
  source.start(sink);
  while (sink.calls.length < 1) await sink.next(/failed/);
  assertStringIncludes(sink.calls[0]!, "give the CA of the server");
  assertEquals(
    [seen, rejections],
    [[], 0],
    "nothing is shown to another server",
  );
  authority = ca;
  await source.reconcile();
  assertStringIncludes(sink.calls[1]!, "it answered 401");
  assertEquals([seen, rejections], [["Bearer old"], 1]);
  token = "new";
  await source.reconcile();
  assertEquals(sink.calls.at(-1), "synced");
  assertEquals([...sink.entries.services.keys()], ["default/web"]);
  await source.stop();
});
