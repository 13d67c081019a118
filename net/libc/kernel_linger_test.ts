import { assert, assertEquals } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { readToEnd } from "../../tests/support/peers/sockets.ts";
import { lingerInKernel } from "./socket_option.ts";
import { openLibc } from "./libc.ts";
import { listenPolledTcp } from "../bind/polled_listener.ts";

Deno.test("a peer that floods still reads what it was sent last, and then the end", async () => {
  const library = openLibc();
  assert(library !== undefined, "these tests run where there is one");
  const listener = listenPolledTcp({ hostname: "127.0.0.1", port: 0 }, 1)!;
  const peer = await Deno.connect({ port: listener.address.port });
  // More than the kernel's buffers take: it never gets through.
  const flood = peer.write(new Uint8Array(64 * 1024 * 1024)).catch(() => {});
  const accepted = library.accept4(listener.descriptor, null, null, 0);
  const words = new TextEncoder().encode("calm down");
  library.send(accepted, words, BigInt(words.length), 0);
  lingerInKernel(library, accepted, systemTimers);
  library.close(accepted);
  assertEquals(await readToEnd(peer), words);
  peer.close();
  await flood;
  listener.close();
});
