import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Log } from "../log.ts";
import { Credentials } from "./credentials.ts";
import { reloadAll } from "./reload.ts";
import { ThrowawayCa } from "./throwaway_ca.ts";

/** A log that keeps what it is told, level first. */
function recorded(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const at = (level: string) => (message: string) =>
    void lines.push(`${level}: ${message}`);
  const log: Log = {
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    event: at("event"),
    detail: at("detail"),
    wantsPackets: false,
    packet: at("packet"),
  };
  return { log, lines };
}

Deno.test("a reload takes what is good and keeps the old where it is not", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const ca = await ThrowawayCa.create("test-ca");
    const files = { ca: `${folder}/ca.crt` };
    await Deno.writeTextFile(files.ca, ca.cert);
    const credentials = Credentials.load(files);
    const { log, lines } = recorded();
    reloadAll([credentials], log);
    assertStringIncludes(lines.at(-1)!, "info: certificates read again");
    const other = await ThrowawayCa.create("other-ca");
    await Deno.writeTextFile(files.ca, other.cert);
    reloadAll([credentials], log);
    assertStringIncludes(lines.at(-1)!, "info: certificates reloaded");
    await Deno.writeTextFile(files.ca, "not a certificate");
    reloadAll([credentials], log);
    assertStringIncludes(lines.at(-1)!, "the ones in use stay");
    assertEquals(credentials.current.ca, other.cert);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
