import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { FakeTimers } from "../tests/support/memory/fake_timers.ts";
import { RecordedLog } from "../tests/support/watch/recorded_log.ts";
import { settled } from "../tests/support/memory/conduit_probe.ts";
import {
  type AuditFile,
  type AuditFiles,
  AuditLogError,
  systemAuditFiles,
} from "./audit_file.ts";
import {
  AUDIT_RETRY_MS,
  AuditLog,
  CLOSE_TIMEOUT_MS,
  FLUSH_MS,
  PENDING_BYTES_MAX,
} from "./audit_log.ts";

/** A machine whose disk does what a test wants. */
class FakeFiles implements AuditFiles {
  readonly texts = new Map<string, string>();
  /** Bytes that still fit. */
  room = Infinity;
  /** Thrown by `putAside`. */
  asideProblem: Error | undefined;
  /** Set: writes wait for it. */
  hang: Promise<void> | undefined;
  opens = 0;
  writes = 0;

  check(): void {}

  open(path: string): Promise<AuditFile> {
    this.opens++;
    const text = () => this.texts.get(path) ?? "";
    if (!this.texts.has(path)) this.texts.set(path, "");
    return Promise.resolve({
      bytes: text().length,
      write: async (bytes: Uint8Array) => {
        this.writes++;
        await this.hang;
        const part = bytes.subarray(0, this.room);
        this.room -= part.length;
        this.texts.set(path, text() + new TextDecoder().decode(part));
        if (part.length < bytes.length) {
          throw new Error("No space left on device (os error 28)");
        }
      },
      cut: (bytes: number) => {
        this.room += text().length - bytes;
        this.texts.set(path, text().slice(0, bytes));
        return Promise.resolve();
      },
      close: () => {},
    });
  }

  putAside(path: string, filesMax: number): Promise<void> {
    if (this.asideProblem !== undefined) {
      return Promise.reject(this.asideProblem);
    }
    for (let number = filesMax - 1; number > 0; number--) {
      const from = number === 1 ? path : `${path}.${number - 1}`;
      const text = this.texts.get(from);
      if (text !== undefined) this.texts.set(`${path}.${number}`, text);
    }
    this.texts.delete(path);
    return Promise.resolve();
  }
}

const json = (value: unknown) => `${JSON.stringify(value)}\n`;

function setUp(options: { bytesMax?: number; filesMax?: number } = {}) {
  const files = new FakeFiles();
  const timers = new FakeTimers();
  const log = new RecordedLog();
  const audit = AuditLog.open(
    { path: "a.log", bytesMax: 1_000_000, filesMax: 3, ...options },
    { log, timers, auditFiles: files },
  );
  const flush = async (afterMs = FLUSH_MS) => {
    timers.advance(afterMs);
    for (let turn = 0; turn < 50; turn++) await settled();
  };
  const text = (path = "a.log") => files.texts.get(path) ?? "";
  return { files, timers, log, audit, flush, text };
}

Deno.test("lines are written together and in order", async () => {
  const s = setUp();
  s.audit.write(json({ n: 1 }));
  s.audit.write(json({ n: 2, text: 'a "quoted"\nline' }));
  assertEquals(s.text(), "");
  await s.flush();
  assertEquals(s.text(), '{"n":1}\n{"n":2,"text":"a \\"quoted\\"\\nline"}\n');
  s.audit.write(json({ n: 3 }));
  await s.audit.close();
  assertEquals(s.text().split("\n").length, 4);
  assertEquals([s.audit.written, s.audit.dropped, s.files.opens], [3, 0, 1]);
});

Deno.test("lines that come during a write wait for each other", async () => {
  const s = setUp();
  const { promise, resolve } = Promise.withResolvers<void>();
  s.files.hang = promise;
  s.audit.write(json({ n: 1 }));
  await s.flush();
  for (let n = 2; n < 10; n++) s.audit.write(json({ n }));
  resolve();
  await s.flush(0);
  assertEquals([s.files.writes, s.audit.written], [1, 1]);
  await s.flush();
  assertEquals([s.files.writes, s.audit.written], [2, 9]);
  await s.audit.close();
});

Deno.test("much at once is written without waiting for the timer", async () => {
  const s = setUp();
  for (let n = 0; n < 4_000; n++) {
    s.audit.write(json({ n, text: "x".repeat(90) }));
  }
  await s.flush(0);
  assert(s.text().length > 300_000);
  await s.audit.close();
  const numbers = s.text().trim().split("\n").map((line) => JSON.parse(line).n);
  assertEquals(numbers, Array.from({ length: 4_000 }, (_, n) => n));
});

Deno.test("a full disk is logged once, costs no line that fits into memory, and leaves no half line", async () => {
  const s = setUp();
  s.files.room = 20;
  for (let n = 0; n < 10; n++) s.audit.write(json({ n }));
  await s.flush();
  assertEquals(s.text(), "");
  for (let turn = 0; turn < 5; turn++) await s.flush(AUDIT_RETRY_MS);
  assertEquals(
    s.log.matching(/^Cannot write the audit log a\.log: No space/).length,
    1,
  );
  assertMatch(s.audit.problem!, /^Cannot write the audit log a\.log: No space/);
  s.files.room = Infinity;
  s.audit.write(json({ n: 10 }));
  await s.flush(AUDIT_RETRY_MS);
  const numbers = s.text().trim().split("\n").map((line) => JSON.parse(line).n);
  assertEquals(numbers, Array.from({ length: 11 }, (_, n) => n));
  assertEquals(s.log.matching(/can be written again/).length, 1);
  assertEquals(s.audit.problem, undefined);
  assertEquals(s.audit.dropped, 0);
});

Deno.test("what finds no room is dropped and counted, and the file says so", async () => {
  const s = setUp({ bytesMax: 100_000_000 });
  s.files.room = 0;
  const text = "x".repeat(1_000);
  const entry = (n: number) => ({ n: String(n).padStart(5, "0"), text });
  const fits = Math.floor(
    PENDING_BYTES_MAX / (JSON.stringify(entry(0)).length + 1),
  );
  for (let n = 0; n < fits + 500; n++) {
    s.audit.write(json(entry(n)));
    if (n % 100 === 0) await s.flush(0);
  }
  const { dropped } = s.audit;
  assertEquals(dropped, 500);
  s.files.room = Infinity;
  await s.flush(AUDIT_RETRY_MS);
  s.audit.write(json({ n: "later" }));
  await s.flush();
  const lines = s.text().trim().split("\n").map((line) => JSON.parse(line));
  const [gap, later] = lines.slice(-2);
  assertEquals([gap.event, gap.lines, later.n], ["gap", dropped, "later"]);
  assertEquals(lines.length + dropped, fits + 500 + 2);
});

Deno.test("files are put aside by size, and only so many are kept", async () => {
  const s = setUp({ bytesMax: 30, filesMax: 3 });
  for (let n = 10; n < 26; n++) {
    s.audit.write(json({ n }));
    await s.flush();
  }
  assertEquals([...s.files.texts.keys()].sort(), [
    "a.log",
    "a.log.1",
    "a.log.2",
  ]);
  assertEquals(s.text(), '{"n":25}\n');
  assertEquals(s.text("a.log.1"), '{"n":22}\n{"n":23}\n{"n":24}\n');
  assertEquals(s.text("a.log.2"), '{"n":19}\n{"n":20}\n{"n":21}\n');
});

Deno.test("a file that cannot be put aside grows on, and that is logged once", async () => {
  const s = setUp({ bytesMax: 30 });
  s.files.asideProblem = new Error("Permission denied");
  for (let n = 10; n < 20; n++) {
    s.audit.write(json({ n }));
    await s.flush();
  }
  assertEquals(s.text().length, 90);
  assertEquals(
    s.log.matching(/aside: Permission denied; it grows on/).length,
    1,
  );
});

Deno.test("a file that was moved away is opened anew when asked", async () => {
  const s = setUp();
  s.audit.write(json({ n: 1 }));
  await s.flush();
  s.files.texts.set("moved", s.text());
  s.files.texts.delete("a.log");
  s.audit.reopen();
  s.audit.write(json({ n: 2 }));
  await s.flush();
  assertEquals([s.text("moved"), s.text()], ['{"n":1}\n', '{"n":2}\n']);
});

Deno.test("a disk that hangs holds the end up for a bounded time", async () => {
  const s = setUp();
  s.files.hang = new Promise(() => {});
  s.audit.write(json({ n: 1 }));
  s.audit.write(json({ n: 2 }));
  const closed = s.audit.close();
  await s.flush(CLOSE_TIMEOUT_MS);
  await closed;
  s.audit.write(json({ n: 3 }));
  assertEquals(s.audit.dropped, 3);
  assertEquals(s.log.matching(/ends without its last 2 lines/).length, 1);
});

/** A log on the real disk, in a folder of its own. */
async function onDisk(
  work: (path: string, open: (bytesMax?: number) => AuditLog) => Promise<void>,
) {
  const folder = await Deno.makeTempDir({ prefix: "audit-" });
  const path = `${folder}/audit.log`;
  const environment = { log: new RecordedLog(), timers: new FakeTimers() };
  const open = (bytesMax = 1_000_000) =>
    AuditLog.open({ path, bytesMax, filesMax: 2 }, environment);
  try {
    await work(path, open);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("on disk it is for its owner only, and goes on behind what is there", () =>
  onDisk(async (path, open) => {
    for (const n of [1, 2]) {
      const audit = open();
      audit.write(json({ n }));
      await audit.close();
    }
    assertEquals(await Deno.readTextFile(path), '{"n":1}\n{"n":2}\n');
    assertEquals((await Deno.stat(path)).mode! & 0o777, 0o600);
  }));

Deno.test("on disk a line that a crash has cut does not spoil the next one", () =>
  onDisk(async (path, open) => {
    await Deno.writeTextFile(path, '{"n":1}\n{"n":');
    // The mask of a process may be another test's at that moment.
    await Deno.chmod(path, 0o600);
    const audit = open();
    audit.write(json({ n: 3 }));
    await audit.close();
    assertEquals(await Deno.readTextFile(path), '{"n":1}\n{"n":\n{"n":3}\n');
  }));

Deno.test("on disk full files are put aside", () =>
  onDisk(async (path, open) => {
    for (const n of [1, 2, 3]) {
      const audit = open(8);
      audit.write(json({ n }));
      await audit.close();
    }
    assertEquals(await Deno.readTextFile(path), '{"n":3}\n');
    assertEquals(await Deno.readTextFile(`${path}.1`), '{"n":2}\n');
    const folder = path.slice(0, path.lastIndexOf("/"));
    assertEquals([...Deno.readDirSync(folder)].length, 2);
  }));

Deno.test("on disk what was written of a failed batch is cut off again", () =>
  onDisk(async (path) => {
    const file = await systemAuditFiles().open(path);
    await file.write(new TextEncoder().encode("whole\nhal"));
    await file.cut(6);
    await file.write(new TextEncoder().encode("next\n"));
    file.close();
    assertEquals(await Deno.readTextFile(path), "whole\nnext\n");
  }));

Deno.test("a file that others may have written, or can redirect, is refused", () =>
  onDisk(async (path) => {
    const { check, open } = systemAuditFiles();
    const refused = async (words: string) => {
      const { message } = assertThrows(() => check(path), AuditLogError);
      assert(message.includes(words), message);
      // A reload opens it anew.
      await assertRejects(() => open(path), AuditLogError, words);
    };
    await Deno.writeTextFile(path, "{}\n");
    for (const mode of [0o666, 0o620, 0o602]) {
      await Deno.chmod(path, mode);
      await refused(`mode is 0${mode.toString(8)}, so others may change it`);
    }
    await Deno.chmod(path, 0o640);
    check(path);
    (await open(path)).close();
    await Deno.rename(path, `${path}.true`);
    await Deno.symlink(`${path}.true`, path);
    await refused("it is a symbolic link");
    assertEquals(await Deno.readTextFile(`${path}.true`), "{}\n");
    if (Deno.uid() !== 0) return;
    await Deno.remove(path);
    await Deno.rename(`${path}.true`, path);
    await Deno.chown(path, 65_534, 65_534);
    await refused("it belongs to user 65534, and this is user 0");
  }));

Deno.test("a path that can never work is refused at the start", () =>
  onDisk((path) => {
    const refused = (bad: string) =>
      assertThrows(() => systemAuditFiles().check(bad), AuditLogError).message;
    const folder = path.slice(0, path.lastIndexOf("/"));
    assert(refused(folder).includes("it is no plain file; give the path"));
    const socket = Deno.listen({ transport: "unix", path: `${folder}/s` });
    assert(refused(`${folder}/s`).includes("it is no plain file"));
    socket.close();
    assert(refused(`${folder}/none/a.log`).includes("in a folder that exists"));
    return Promise.resolve();
  }));
