import { assert, assertEquals, assertThrows } from "@std/assert";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { openLibc } from "../libc/libc.ts";
import { listenPolledTcp } from "../bind/polled_listener.ts";
import { connectPolledTcp } from "./polled_connect.ts";
import { Poller, Ready } from "../poll/poller.ts";
import { type Stream, WOULD_BLOCK } from "./stream.ts";
import { codeOf } from "../../platform/errors/error_code.ts";

const library = openLibc()!;
const NEVER = new AbortController().signal;
const MSG_OOB = 1;
const words = (said: string) => new TextEncoder().encode(said);

/** A descriptor, and what the poller has told of it. */
class End {
  reported = 0;
  #received = Promise.withResolvers<void>();

  constructor(readonly stream: Stream) {
    stream.notify(this);
  }

  onFault(): void {}

  onReady(ready: number): void {
    this.reported |= ready;
    this.#received.resolve();
    this.#received = Promise.withResolvers();
  }

  async until(bits: number): Promise<void> {
    while ((this.reported & bits) !== bits) await this.#received.promise;
  }

  /** One read; text, the peer's end, or what a read without bytes says. */
  read(length = 1024): string | number {
    const into = new Uint8Array(length);
    const count = this.stream.read(into);
    return count > 0
      ? new TextDecoder().decode(into.subarray(0, count))
      : count;
  }
}

/** Both ends of a connection, and the poller that waits for them. */
async function connected(
  test: (here: End, there: End) => Promise<void> | void,
): Promise<void> {
  const poller = new Poller(library);
  const loopback = { hostname: "127.0.0.1", port: 0 };
  const listener = listenPolledTcp(loopback, 1, poller)!;
  const sockets = await Promise.all([
    listener.accept(),
    connectPolledTcp(listener.address, NEVER, poller)!,
  ]);
  const ends = sockets.map((stream) => new End(stream));
  try {
    await test(ends[0]!, ends[1]!);
  } finally {
    for (const { stream } of ends) stream.close();
    listener.close();
  }
}

function test(name: string, check: Parameters<typeof connected>[0]): void {
  Deno.test({
    name,
    ignore: openLibc() === undefined,
    fn: () => connected(check),
  });
}

test(
  "a short read is the last one until more is reported",
  async (here, there) => {
    there.stream.write(words("one"));
    assertEquals(here.read(), "one");
    assertEquals(here.read(), WOULD_BLOCK);
    await settled();
    here.reported = 0;
    assertEquals(here.read(), WOULD_BLOCK);
    there.stream.write(words("two"));
    assertEquals(here.read(), WOULD_BLOCK, "it was not told yet");
    await here.until(Ready.READ);
    assertEquals(here.read(2), "tw");
    assertEquals(here.read(2), "o");
    assertEquals(here.read(2), WOULD_BLOCK);
  },
);

test(
  "a read that is filled exactly is followed by another one",
  async (here, there) => {
    there.stream.write(words("12345678"));
    await here.until(Ready.READ);
    assertEquals(here.read(4), "1234");
    assertEquals(here.read(4), "5678");
    assertEquals(here.read(4), WOULD_BLOCK);
  },
);

test(
  "an end that was reported together with bytes is read behind them",
  async (here, there) => {
    there.stream.write(words("last"));
    there.stream.closeWrite();
    await here.until(Ready.READ | Ready.PEER_END);
    assertEquals(here.read(), "last");
    assertEquals(here.read(), 0);
    assertEquals(here.read(), 0, "and for ever");
  },
);

test("bytes behind urgent data are read", async (here, there) => {
  const number = there.stream.descriptor!;
  there.stream.write(words("before"));
  assertEquals(library.send(number, words("!"), 1n, MSG_OOB), 1);
  there.stream.write(words("behind"));
  await here.until(Ready.READ | Ready.URGENT);
  assertEquals(here.read(), "before");
  // A busy kernel may bring it a moment later.
  here.reported = 0;
  let behind = here.read();
  if (behind === WOULD_BLOCK) {
    await here.until(Ready.READ);
    behind = here.read();
  }
  assertEquals(behind, "behind");
  assertEquals(here.read(), WOULD_BLOCK);
});

test(
  "a reset is an error, once what came before it is read",
  async (here, there) => {
    there.stream.write(words("half an answ"));
    there.stream.reset();
    await here.until(Ready.ERROR);
    assertEquals(here.read(), "half an answ");
    assertEquals(codeOf(thrown(() => here.read())), "ECONNRESET");
  },
);

test(
  "what there is no room for is reported when there is",
  async (here, there) => {
    const chunk = new Uint8Array(256 * 1024).fill(1);
    let written = 0;
    for (let count = -1; count !== 0; written += count) {
      count = there.stream.write(chunk);
    }
    there.reported = 0;
    await settled();
    assertEquals(there.reported & Ready.WRITE, 0);
    await here.until(Ready.READ);
    const into = new Uint8Array(1024 * 1024);
    for (let read = 0; read < written;) {
      const count = here.stream.read(into);
      if (count > 0) read += count;
      else {
        here.reported = 0;
        await here.until(Ready.READ);
      }
    }
    await there.until(Ready.WRITE);
    assert(there.stream.write(chunk) > 0);
  },
);

test(
  "a peer that is gone is an error of a write, and no signal",
  async (here, there) => {
    there.stream.reset();
    await here.until(Ready.ERROR);
    const codes = [0, 1].map(() =>
      codeOf(thrown(() => here.stream.write(words("hello?"))))
    );
    assertEquals(codes, ["ECONNRESET", "EPIPE"]);
    assertEquals(
      codeOf(thrown(() => here.stream.closeWrite())),
      "ENOTCONN",
    );
  },
);

test("what is closed is neither read nor written, and closing twice is harmless", ({ stream }) => {
  stream.close();
  stream.close();
  stream.reset();
  assertEquals(stream.isOpen, false);
  const { BadResource } = Deno.errors;
  assertThrows(() => stream.read(new Uint8Array(1)), BadResource);
  assertThrows(() => stream.write(new Uint8Array(1)), BadResource);
});

function thrown(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}
