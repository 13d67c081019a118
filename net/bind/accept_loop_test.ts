import { assertEquals, assertMatch } from "@std/assert";
import { openLibc } from "../libc/libc.ts";
import { acceptLoop } from "./accept_loop.ts";

/** Somebody who has connected. */
class Conn {
  isClosed = false;

  close(): void {
    this.isClosed = true;
  }
}

const noDescriptors = () =>
  Object.assign(new Error("too many open files"), { code: "EMFILE" });

Deno.test("who waits when there is no descriptor left is refused at once", {
  ignore: openLibc() === undefined,
}, async () => {
  const [refused, served] = [new Conn(), new Conn()];
  // What accept(2) says, call by call.
  const story = [noDescriptors, () => refused, noDescriptors, () => served];
  const next = (): Conn | undefined => {
    const [step] = story.splice(0, 1);
    const reported = step?.();
    if (reported instanceof Error) throw reported;
    return reported;
  };
  const received: Conn[] = [];
  const problems: string[] = [];
  await acceptLoop(
    {
      acceptNow: next,
      accept: () => Promise.reject(new Deno.errors.BadResource()),
    },
    "a port",
    {
      onConnection: (conn) => received.push(conn),
      onProblem: (line) => problems.push(line),
    },
  );
  // The second time the one with the spare descriptor is `served`.
  assertEquals([refused.isClosed, served.isClosed, received], [true, true, []]);
  assertEquals(problems.length, 1);
  assertMatch(problems[0]!, /^Cannot accept a connection on a port: too many/);
});

Deno.test("the descriptor to refuse with is there for the next one, too", {
  ignore: openLibc() === undefined,
}, async () => {
  const { close, eventfd, fcntl } = openLibc()!;
  const F_GETFD = 1;
  let refused = -1;
  const story = [
    () => {
      throw noDescriptors();
    },
    () => {
      refused = eventfd(0, 0);
      return { close: () => void close(refused) };
    },
  ];
  await acceptLoop(
    {
      acceptNow: () => story.shift()?.(),
      accept: () => Promise.reject(new Deno.errors.BadResource()),
    },
    "a port",
    { onConnection() {}, onProblem() {} },
  );
  // It has the lowest number that is free, which is the one just closed.
  assertEquals(fcntl(refused, F_GETFD, 0), 1);
});
