/** Whose turn it is when streams of the C library always have something to do. */

import { assert, assertEquals } from "@std/assert";
import type {
  Conduit,
  ConduitEnd,
  ConduitEvents,
} from "../../proto/transfer/conduit.ts";
import { transfer } from "../../proto/transfer/transfer.ts";
import { settled } from "../../tests/support/memory/conduit_probe.ts";
import { type LibC, openLibc } from "../libc/libc.ts";
import { conduitOf } from "./stream_conduit.ts";
import { BYTES_PER_TURN, Poller } from "../poll/poller.ts";
import { StreamDescriptor } from "./stream_descriptor.ts";

const ignore = openLibc() === undefined;
const library = openLibc()!;

/** More than any end may have in one turn; then the test fails, and ends. */
const TOO_MANY_BYTES = 8 * BYTES_PER_TURN;

/** A kernel that always has bytes, and always has room. */
class EagerKernel {
  /** Since the event loop had its turn. */
  bytes = 0;
  most = 0;

  #moved(length: bigint | number): number {
    this.bytes += Number(length);
    this.most = Math.max(this.most, this.bytes);
    return this.bytes > TOO_MANY_BYTES ? 0 : Number(length);
  }

  readonly calls: LibC = {
    ...library,
    recv: (_descriptor, _into, length) => this.#moved(length),
    send: (_descriptor, _bytes, length) => this.#moved(length),
  };

  conduit(poller: Poller): Conduit {
    const number = library.eventfd(0, 0x80800);
    const descriptor = new StreamDescriptor(this.calls, poller, number, {
      isTcp: false,
      mayRead: true,
      remoteAddress: "",
      localAddress: "",
    });
    return conduitOf(descriptor);
  }
}

/** Thirty turns, in each of which a kernel moves what one may, and no more. */
function test(
  name: string,
  use: (kernel: EagerKernel, poller: Poller) => () => Promise<unknown>,
): void {
  Deno.test({
    name,
    ignore,
    fn: async () => {
      const [poller, kernel] = [new Poller(library), new EagerKernel()];
      const end = use(kernel, poller);
      for (let turn = 0; turn < 30; turn++) {
        await settled();
        kernel.bytes = 0;
      }
      assert(kernel.most > 0, "nothing moved");
      assert(kernel.most < 2 * BYTES_PER_TURN, `${kernel.most} in one turn`);
      await end();
      assertEquals(poller.wakeupKind, undefined);
    },
  });
}

/** Waits for what the kernel tells, and for nothing else. */
function attached(conduit: Conduit, events: Partial<ConduitEvents>) {
  const closed = Promise.withResolvers<ConduitEnd>();
  conduit.attach({
    onData: () => {}, // One chunk, and no more: it is never taken.
    onEnd: () => {},
    onWritable: () => {},
    onClose: closed.resolve,
    ...events,
  });
  return () => {
    conduit.reset("enough");
    return closed.promise;
  };
}

test(
  "two ends that are faster than we are leave the event loop its turns",
  (kernel, poller) => {
    const [one, other] = [kernel.conduit(poller), kernel.conduit(poller)];
    const ended = transfer(one, other);
    return () => {
      one.reset("enough");
      return ended;
    };
  },
);

test(
  "bytes without end for a peer that takes all leave the event loop alone",
  (kernel, poller) => {
    const conduit = kernel.conduit(poller);
    const chunk = new Uint8Array(64 * 1024);
    const offer = () => {
      while (conduit.write(chunk) === chunk.length);
    };
    const end = attached(conduit, { onWritable: offer });
    offer();
    return end;
  },
);

test(
  "bytes without end for a reader that takes them a little later, too",
  (kernel, poller) => {
    const conduit = kernel.conduit(poller);
    return attached(conduit, {
      onData: ({ length }) => queueMicrotask(() => conduit.consumed(length)),
    });
  },
);
