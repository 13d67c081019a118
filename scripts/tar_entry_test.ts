import { assertEquals, assertThrows } from "@std/assert";
import { tarEntry } from "./tar_entry.ts";

function entry(name: string, content: string): Uint8Array {
  const padded = Math.ceil(content.length / 512) * 512;
  const bytes = new Uint8Array(512 + padded);
  const write = (text: string, at: number) =>
    new TextEncoder().encodeInto(text, bytes.subarray(at));
  write(name, 0);
  write(content.length.toString(8).padStart(11, "0"), 124);
  write(content, 512);
  return bytes;
}

function archive(...entries: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const end = new Uint8Array(1024);
  return Uint8Array.from([...entries, end].flatMap((each) => [...each]));
}

Deno.test("tarEntry() finds a file behind others", () => {
  const bytes = archive(
    entry("package/README.md", "x".repeat(513)),
    entry("package/deno", "the one"),
  );
  const found = tarEntry(bytes, "package/deno");
  assertEquals(new TextDecoder().decode(found), "the one");
});

Deno.test("tarEntry() refuses an archive without the file, or cut short", () => {
  const bytes = archive(entry("package/deno", "x".repeat(600)));
  assertThrows(() => tarEntry(bytes, "package/node"), Error, "Cannot find");
  const cut = bytes.slice(0, 1000);
  assertThrows(() => tarEntry(cut, "package/deno"), Error, "Cannot find");
});
