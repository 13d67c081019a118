import { assertEquals, assertStringIncludes } from "@std/assert";
import type { OpenFsEvents } from "../../../platform/files/directory_watch.ts";
import { FakeTimers } from "../../../tests/support/memory/fake_timers.ts";
import { RecordedSink } from "../../../tests/support/watch/recorded_sink.ts";
import { FileSource } from "./file.ts";
import { soon } from "../../../tests/support/watch/event_loop.ts";

const WEB = "services:\n- name: web\n  ports: [{port: 80}]\n";
const DB = "services:\n- name: db\n  ports: [{port: 5432}]\n";

type News = IteratorResult<{ paths: string[]; kind: string }>;

/** A file source of a file in a folder of its own. */
class Rig implements AsyncDisposable {
  readonly sink = new RecordedSink();
  readonly timers = new FakeTimers();
  readonly source: FileSource;
  readonly #grace = Promise.withResolvers<void>();
  #tell: (news: News) => void = () => {};

  private constructor(readonly folder: string) {
    this.timers.onSet = (delayMs) => {
      if (delayMs === 2_000) this.#grace.resolve();
    };
    this.source = new FileSource({
      path: this.path,
      timers: this.timers,
      open: () => this.#open(),
    });
  }

  /** News that come when the test says so. */
  #open(): ReturnType<OpenFsEvents> {
    return {
      close: () => this.#tell({ value: undefined, done: true }),
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<News>((resolve) => this.#tell = resolve),
      }),
    };
  }

  static async open(text?: string): Promise<Rig> {
    const rig = new Rig(await Deno.makeTempDir());
    if (text !== undefined) await Deno.writeTextFile(rig.path, text);
    const done = rig.sink.next(/synced|failed/);
    rig.source.start(rig.sink);
    await done;
    return rig;
  }

  get path(): string {
    return `${this.folder}/services.yaml`;
  }

  /** Resolves when a difference was found, and is waited for. */
  get grace(): Promise<void> {
    return this.#grace.promise;
  }

  get names(): string[] {
    return [...this.sink.entries.services.keys()];
  }

  /** Replaces the file as an editor does, and waits for what comes of it. */
  async replace(text: string, outcome: RegExp): Promise<void> {
    const done = this.sink.next(outcome);
    await Deno.writeTextFile(`${this.path}~`, text);
    await Deno.rename(`${this.path}~`, this.path);
    this.look();
    await done;
  }

  /** Writes the file where it is, which the watch sees at once. */
  async write(text: string): Promise<void> {
    await Deno.writeTextFile(this.path, text);
    this.#tell({ value: { paths: [this.path], kind: "access" }, done: false });
    // The news pass an asynchronous iterator.
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }

  /** Lets what was written settle, and waits for what comes of it. */
  async settle(outcome: RegExp): Promise<void> {
    const done = this.sink.next(outcome);
    this.timers.advance(100);
    await done;
  }

  /** What the watch does now and then; that it is told is its own test. */
  look(): void {
    this.timers.advance(60_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Longer than a read of a small file takes, nearly always. */
const aWhile = () => soon(() => false);

Deno.test("a file is read, and again when it is replaced", async () => {
  await using rig = await Rig.open(WEB);
  assertEquals(rig.names, ["default/web"]);
  await rig.replace(DB, /synced/);
  assertEquals(rig.names, ["default/db"]);
});

Deno.test("a bad file keeps what the good one said, and says so", async () => {
  await using rig = await Rig.open(WEB);
  await rig.replace("services:\n- name: db\n  port: 1\n", /failed/);
  assertEquals(rig.names, ["default/web"]);
  const said = rig.sink.calls.at(-1)!;
  assertStringIncludes(
    said,
    `Cannot use ${rig.path}: line 3: services[0].port`,
  );
  await rig.replace(WEB, /synced/);
  assertEquals(rig.sink.calls.filter((call) => call === "set").length, 1);
});

Deno.test("a file that is not there yet is waited for", async () => {
  await using rig = await Rig.open();
  assertStringIncludes(rig.sink.calls.at(-1)!, "there is no such file");
  await rig.replace(WEB, /synced/);
  assertEquals(rig.names, ["default/web"]);
  const failed = rig.sink.next(/failed/);
  await Deno.remove(rig.path);
  rig.look();
  await failed;
  assertEquals(rig.names, ["default/web"]);
});

Deno.test("reading all again finds nothing when nothing was missed", async () => {
  await using rig = await Rig.open(WEB);
  await rig.source.reconcile();
  assertEquals(rig.sink.calls, ["set", "synced"]);
  assertEquals(rig.sink.drift, 0);
});

Deno.test("a change that no watch reported is found and counted", async () => {
  await using rig = await Rig.open(WEB);
  await Deno.writeTextFile(rig.path, DB);
  const reading = rig.source.reconcile();
  await rig.grace;
  rig.timers.advance(2_000);
  await reading;
  assertEquals(rig.sink.calls.slice(2), ["repair", "synced"]);
  assertEquals(rig.names, ["default/db"]);
  assertEquals(rig.sink.drift, 2);
});

Deno.test("a first file that no watch reported is no drift", async () => {
  await using rig = await Rig.open();
  await Deno.writeTextFile(rig.path, WEB);
  await rig.source.reconcile();
  assertEquals([rig.names, rig.sink.drift], [["default/web"], 0]);
});

Deno.test("a file that is written in its place is read at once, if it takes nothing away", async () => {
  await using rig = await Rig.open(WEB);
  const synced = rig.sink.next(/synced/);
  await rig.write(`${WEB}- name: db\n  ports: [{port: 5432}]\n`);
  await synced;
  assertEquals(rig.names, ["default/web", "default/db"]);
  await rig.settle(/synced/);
  await rig.write(DB);
  await aWhile();
  assertEquals(rig.names, ["default/web", "default/db"], "more may come");
  await rig.settle(/synced/);
  assertEquals(rig.names, ["default/db"]);
});

Deno.test("half a file is not spoken of until it has settled", async () => {
  await using rig = await Rig.open(WEB);
  await rig.write("services:\n- name: we");
  await aWhile();
  assertEquals(rig.sink.calls, ["set", "synced"]);
  await rig.settle(/failed/);
  assertStringIncludes(rig.sink.calls.at(-1)!, "wanted one at least");
  assertEquals(rig.names, ["default/web"]);
});
