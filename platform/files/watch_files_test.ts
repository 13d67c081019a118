import { assertEquals, assertThrows } from "@std/assert";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import type { FsEvents } from "./directory_watch.ts";
import {
  CHANGED_ENTRIES_MAX,
  WATCHED_FILES_MAX,
  watchFiles,
} from "./watch_files.ts";

/** The platform's news, told by the test. */
class Stage implements AsyncDisposable {
  readonly folder = Deno.makeTempDirSync();
  readonly timers = new FakeTimers();
  readonly reported: string[] = [];
  /** The directories of each watch that was opened. */
  readonly opened: string[][] = [];
  readonly problems: string[] = [];
  isLimited = false;
  #tell: (paths: string[], flag?: string, kind?: string) => void = () => {};
  #close = () => {};

  path(name: string): string {
    return `${this.folder}/${name}`;
  }

  watch(files: string[], directories: string[] = []) {
    const watch = watchFiles({
      files: files.map((name) => this.path(name)),
      directories: directories.map((name) => this.path(name)),
      timers: this.timers,
      onFiles: (paths) => this.reported.push(this.#short(paths.join(" "))),
      onWritten: () => this.reported.push("written"),
      onEntries: (directory, names) =>
        this.reported.push(`${this.#short(directory)}: ${names ?? "all"}`),
      onProblem: (line) => this.problems.push(line),
      open: (paths) => this.#open(paths),
    });
    this.#close = () => watch.close();
  }

  /** News about `names`, and the time it takes to settle. */
  async news(...names: string[]): Promise<string[]> {
    await this.tell(...names);
    this.timers.advance(1_000);
    await this.tell(); // A watch that ends lets the next one begin.
    return this.reported.splice(0);
  }

  async tell(...names: string[]): Promise<void> {
    if (names.length > 0) this.#tell(names.map((name) => this.path(name)));
    // The news pass an asynchronous iterator.
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  }

  /** `from` was renamed to `to`. */
  async rename(from: string, to: string): Promise<string[]> {
    Deno.renameSync(this.path(from), this.path(to));
    this.#tell([this.path(from), this.path(to)], undefined, "rename");
    await this.tell();
    return this.reported.splice(0);
  }

  /** Whoever wrote to `name` has closed it. */
  async closed(name: string): Promise<string[]> {
    this.#tell([this.path(name)], undefined, "access");
    await this.tell();
    return this.reported.splice(0);
  }

  /** More happened at once than the platform could note down. */
  async overflow(): Promise<string[]> {
    this.#tell([], "rescan");
    return await this.news();
  }

  #open(directories: string[]): FsEvents {
    if (this.isLimited) throw new Error("no space left for watches");
    this.opened.push(directories.map((path) => this.#short(path)).sort());
    type News = { paths: string[]; flag?: string | null; kind?: string };
    let wake: (result: IteratorResult<News>) => void = () => {};
    this.#tell = (paths, flag, kind = "modify") =>
      wake({ value: { paths, flag: flag ?? null, kind }, done: false });
    return {
      close: () => wake({ value: undefined, done: true }),
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise((resolve) => wake = resolve),
      }),
    };
  }

  #short(path: string): string {
    return path.replaceAll(this.folder, "").replaceAll(/^\/|(?<= )\//g, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("a file is reported when it was written, replaced, removed and made", async () => {
  await using stage = new Stage();
  const path = stage.path("a");
  Deno.writeTextFileSync(path, "1");
  Deno.writeTextFileSync(stage.path("b"), "1");
  stage.watch(["a", "b"]);
  Deno.writeTextFileSync(path, "22");
  assertEquals(await stage.news("a"), ["a"]);
  Deno.writeTextFileSync(stage.path("new"), "33");
  Deno.renameSync(stage.path("new"), path);
  assertEquals(await stage.news("new", "a"), ["a"]);
  Deno.removeSync(path);
  assertEquals(await stage.news("a"), ["a"]);
  Deno.writeTextFileSync(path, "4");
  assertEquals(await stage.news("a"), ["a"]);
  assertEquals(await stage.news("a"), []);
});

Deno.test("files of a Kubernetes volume change when its link is swapped", async () => {
  await using stage = new Stage();
  for (const version of ["..1", "..2"]) {
    Deno.mkdirSync(stage.path(version));
    for (const name of ["tls.crt", "tls.key"]) {
      Deno.writeTextFileSync(stage.path(`${version}/${name}`), version);
    }
  }
  Deno.symlinkSync("..1", stage.path("..data"));
  for (const name of ["tls.crt", "tls.key"]) {
    Deno.symlinkSync(`..data/${name}`, stage.path(name));
  }
  stage.watch(["tls.crt", "tls.key"]);
  assertEquals(stage.opened, [["", "..1"]]);
  Deno.symlinkSync("..2", stage.path("..tmp"));
  Deno.renameSync(stage.path("..tmp"), stage.path("..data"));
  Deno.removeSync(stage.path("..1"), { recursive: true });
  assertEquals(await stage.news("..data"), ["tls.crt tls.key"]);
  assertEquals(stage.opened.at(-1), ["", "..2"]);
});

Deno.test("a directory that is replaced, or comes later, is watched anew", async () => {
  await using stage = new Stage();
  stage.watch(["certs/tls.crt"]);
  assertEquals(stage.opened, [[""]]);
  Deno.mkdirSync(stage.path("certs"));
  Deno.writeTextFileSync(stage.path("certs/tls.crt"), "1");
  assertEquals(await stage.news("certs"), ["certs/tls.crt"]);
  assertEquals(stage.opened.at(-1), ["certs"]);
  Deno.mkdirSync(stage.path("next"));
  Deno.writeTextFileSync(stage.path("next/tls.crt"), "2");
  Deno.renameSync(stage.path("certs"), stage.path("old"));
  Deno.renameSync(stage.path("next"), stage.path("certs"));
  assertEquals(await stage.news("certs"), ["certs/tls.crt"]);
  assertEquals(stage.opened.length, 3);
  assertEquals(await stage.news("certs"), []);
  assertEquals(stage.opened.length, 3);
});

Deno.test("changes that come together are reported together, but not ever later", async () => {
  await using stage = new Stage();
  for (const name of ["a", "b"]) Deno.writeTextFileSync(stage.path(name), "1");
  stage.watch(["a", "b"]);
  Deno.writeTextFileSync(stage.path("a"), "22");
  await stage.tell("a");
  stage.timers.advance(99);
  Deno.writeTextFileSync(stage.path("b"), "22");
  await stage.tell("b");
  stage.timers.advance(99);
  assertEquals(stage.reported.splice(0), []);
  stage.timers.advance(1);
  assertEquals(stage.reported.splice(0), ["a b"]);
  Deno.writeTextFileSync(stage.path("a"), "333");
  for (let news = 0; news < 20; news++) {
    await stage.tell("noise");
    stage.timers.advance(50);
  }
  assertEquals(stage.reported, ["a"]);
});

Deno.test("a file that is watched alone is reported at once when it was renamed into its place", async () => {
  await using stage = new Stage();
  stage.watch(["a"]);
  const write = (text: string) =>
    Deno.writeTextFileSync(stage.path("new"), text);
  write("1");
  assertEquals(await stage.rename("new", "other"), []);
  write("22");
  assertEquals(await stage.rename("new", "a"), ["a"]);
  write("333");
  assertEquals(await stage.rename("new", "a"), [], "it came just now");
  stage.timers.advance(100);
  assertEquals(stage.reported.splice(0), ["a"]);
  await using pair = new Stage();
  pair.watch(["a", "key"]);
  Deno.writeTextFileSync(pair.path("new"), "1");
  assertEquals(await pair.rename("new", "a"), [], "its key may come yet");
  pair.timers.advance(100);
  assertEquals(pair.reported, ["a"]);
});

Deno.test("a file that is watched alone is reported when it is closed, and when it has settled", async () => {
  await using stage = new Stage();
  stage.watch(["a"]);
  Deno.writeTextFileSync(stage.path("a"), "1");
  await stage.tell("a");
  assertEquals(await stage.closed("other"), []);
  assertEquals(await stage.closed("a"), ["written"]);
  Deno.writeTextFileSync(stage.path("a"), "22");
  assertEquals(await stage.closed("a"), [], "it was just now");
  stage.timers.advance(99);
  assertEquals(stage.reported, []);
  stage.timers.advance(1);
  assertEquals(stage.reported.splice(0), ["a"]);
  Deno.writeTextFileSync(stage.path("a"), "333");
  assertEquals(await stage.closed("a"), ["written"]);
  await using pair = new Stage();
  pair.watch(["a", "key"]);
  Deno.writeTextFileSync(pair.path("a"), "1");
  assertEquals(await pair.closed("a"), [], "its key may come yet");
});

Deno.test("entries of a directory are reported by name, and as all when too many", async () => {
  await using stage = new Stage();
  Deno.mkdirSync(stage.path("nodes"));
  stage.watch([], ["nodes"]);
  assertEquals(await stage.news("nodes/n1", "nodes/n2", "nodes/n1"), [
    "nodes: n1,n2",
  ]);
  const many = Array.from(
    { length: CHANGED_ENTRIES_MAX + 1 },
    (_, index) => `nodes/${index}`,
  );
  assertEquals(await stage.news(...many), ["nodes: all"]);
  // What happened while nobody watched is seen at the next look.
  Deno.writeTextFileSync(stage.path("nodes/n3"), "");
  // The kernel's clock for files ticks every few milliseconds only.
  Deno.utimeSync(stage.path("nodes"), 1, 1);
  stage.timers.advance(60_000);
  assertEquals(stage.reported.splice(0), ["nodes: all"]);
  Deno.writeTextFileSync(stage.path("nodes/n4"), "");
  assertEquals(await stage.overflow(), ["nodes: all"]);
});

Deno.test("without a watch files are looked at, and it is said once", async () => {
  await using stage = new Stage();
  stage.isLimited = true;
  Deno.writeTextFileSync(stage.path("a"), "1");
  stage.watch(["a"]);
  Deno.writeTextFileSync(stage.path("a"), "22");
  stage.timers.advance(5_000);
  assertEquals(stage.reported.splice(0), ["a"]);
  stage.timers.advance(30_000);
  assertEquals(stage.problems, [
    `Cannot watch ${stage.folder}: no space left for watches; files are ` +
    "looked at every 5 s instead",
  ]);
  // Watches are to be had again.
  stage.isLimited = false;
  stage.timers.advance(5_000);
  Deno.writeTextFileSync(stage.path("a"), "333");
  assertEquals(await stage.news("a"), ["a"]);
});

Deno.test("too many files are refused", () => {
  const files = Array.from(
    { length: WATCHED_FILES_MAX + 1 },
    (_, index) => `${index}`,
  );
  const timers = new FakeTimers();
  const onProblem = () => {};
  assertThrows(() => watchFiles({ files, timers, onProblem }), RangeError);
});
