import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "@std/assert";
import type { DialAnswer } from "../../proto/link/dial_handler.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { FIRST_HOLD_MS } from "../../proto/link/first_hold.ts";
import { transfer } from "../../proto/transfer/transfer.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { MemoryConduit } from "../../tests/support/memory/memory_conduit.ts";
import {
  CONNECT_HEAD_TIMEOUT_MS,
  type ConnectDialRequest,
  ConnectSession,
  type ConnectSessionOptions,
  ENDED_WAIT_MS,
} from "./connect_session.ts";

/** What a dial takes ahead of its answer. */
const EARLY_TAKEN = 10;

const encode = (text: string) => new TextEncoder().encode(text);

/** A client, a server between, and a target: all three in memory. */
function setUp(options: Partial<ConnectSessionOptions<string>> = {}) {
  const timers = new FakeTimers();
  const [client, socket] = MemoryConduit.pair();
  const [target, agentSide] = MemoryConduit.pair();
  const dials: {
    order: ConnectDialRequest<string>;
    answer: DialAnswer;
    cancelled: boolean;
  }[] = [];
  const refusals: number[] = [];
  let sent = "";
  const received = listen(client);
  const reached = listen(target);
  new ConnectSession(socket, "caller", {
    timers,
    dial: (order, answer) => {
      const dial = { order, answer, cancelled: false };
      dials.push(dial);
      return {
        cancel: () => void (dial.cancelled = true),
        sendEarly: (bytes) => {
          const taken = Math.min(bytes.length, EARLY_TAKEN - sent.length);
          sent += new TextDecoder().decode(bytes.subarray(0, taken));
          return taken;
        },
      };
    },
    join: (a, b) => void transfer(a, b),
    refused: (status) => refusals.push(status),
    ...options,
  });
  return {
    sentEarly: () => sent,
    timers,
    client,
    target,
    dials,
    refusals,
    received,
    reached,
    say: async (text: string) => {
      client.write(encode(text));
      await settle();
    },
    ends: async () => {
      client.end();
      await settle();
    },
    passed: async (ms: number) => {
      timers.advance(ms);
      await settle();
    },
    connect: async () => {
      dials.at(-1)!.answer.connected(agentSide);
      await settle();
    },
  };
}

/** Everything a conduit's owner receives, as text. */
function listen(conduit: MemoryConduit) {
  const received = { text: "", pieces: [] as string[], ended: false, end: "" };
  conduit.attach({
    onData(chunk) {
      const piece = new TextDecoder().decode(chunk);
      received.pieces.push(piece);
      received.text += piece;
      conduit.consumed(chunk.length);
    },
    onWritable: () => {},
    onEnd: () => void (received.ended = true),
    onClose: ({ kind }) => void (received.end = kind),
  });
  return received;
}

/** Lets everything that is only microtasks away happen. */
const settle = () => new Promise<void>((done) => setTimeout(done, 0));

const REQUEST = "CONNECT node:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const OK = "HTTP/1.1 200 Connection Established\r\n\r\n";

/** A client that has said `text`. */
async function asked(
  text = REQUEST,
  options: Partial<ConnectSessionOptions<string>> = {},
) {
  const s = setUp(options);
  await s.say(text);
  return s;
}

Deno.test("a CONNECT client gets exactly the 200, then the tunnel both ways", async () => {
  const s = await asked();
  assertEquals(s.dials[0]?.order.target, {
    protocol: "tcp",
    address: "node:443",
  });
  assertEquals(s.received.text, "");
  await s.connect();
  assertEquals(s.received.text, OK);
  await s.say("question");
  assertEquals(s.reached.text, "question");
  s.target.write(encode("answer"));
  await settle();
  assertEquals(s.received.pieces, [OK, "answer"]);
});

Deno.test("a target that speaks first waits for the client's first byte", async () => {
  const s = await asked();
  s.target.write(encode("banner"));
  await s.connect();
  assertEquals(s.received.text, OK);
  await s.say("x");
  assertEquals(s.received.text, OK + "banner");
});

Deno.test("a target that speaks first waits no longer than the hold", async () => {
  const s = await asked();
  s.target.write(encode("banner"));
  await s.connect();
  await s.passed(FIRST_HOLD_MS - 1);
  assertEquals(s.received.text, OK);
  await s.passed(1);
  assertEquals(s.received.pieces, [OK, "banner"]);
  assertEquals(s.timers.pendingCount, 0);
});

Deno.test("bytes behind the request head go ahead with the dial", async () => {
  const s = await asked(REQUEST + "early");
  const early = s.dials[0]!.order.takeEarlyData();
  assertEquals(new TextDecoder().decode(early), "early");
  assertEquals(s.dials[0]!.order.takeEarlyData().length, 0);
  await s.connect();
  await s.say("late");
  assertEquals(s.reached.text, "late"); // not twice
});

Deno.test("early bytes that nobody took reach the target first", async () => {
  const s = await asked(REQUEST + "one");
  await s.say("two");
  await s.connect();
  await s.say("three");
  assertEquals(s.reached.text, "onetwothree");
});

Deno.test("half-close works both ways", async () => {
  const s = await asked();
  await s.connect();
  await s.ends();
  assertEquals(s.reached.ended, true);
  s.target.write(encode("still here"));
  await settle();
  await s.passed(FIRST_HOLD_MS);
  s.target.end();
  await settle();
  assertEquals(s.received.text, OK + "still here");
  assertEquals([s.received.end, s.reached.end], ["clean", "clean"]);
});

Deno.test("a client that hangs up while its dial is pending cancels it", async () => {
  const s = await asked();
  await s.ends();
  assertEquals(s.dials[0]?.cancelled, false);
  await s.passed(ENDED_WAIT_MS);
  assertEquals(s.dials[0]?.cancelled, true);
  assertMatch(s.received.text, /^HTTP\/1\.1 504 .*ended its side/s);
});

Deno.test("a client that ended its side at once still reads its refusal", async () => {
  const s = await asked();
  await s.ends();
  s.dials[0]!.answer.failed(new DialError("endpoint", "connection refused"));
  await settle();
  assertMatch(s.received.text, /^HTTP\/1\.1 502 .*connection refused/s);
});

Deno.test("a client that ended its side at once receives what the target sends", async () => {
  const s = await asked();
  await s.ends();
  await s.connect();
  s.target.write(encode("banner"));
  await settle();
  await s.passed(FIRST_HOLD_MS);
  s.target.end();
  await settle();
  assertEquals(s.received.text, OK + "banner");
  s.timers.advance(ENDED_WAIT_MS);
  assertEquals([s.received.end, s.reached.end], ["clean", "clean"]);
});

Deno.test("a client that sent bytes and ended its side still gets the answer", async () => {
  const s = await asked(REQUEST + "GET /");
  await s.ends();
  assertEquals(s.dials[0]?.cancelled, false);
  await s.connect();
  assertEquals([s.reached.text, s.reached.ended], ["GET /", true]);
});

Deno.test("a reset client resets its pending dial", async () => {
  const s = await asked();
  s.client.reset("gone");
  await settle();
  assertEquals(s.dials[0]?.cancelled, true);
});

Deno.test("a failed dial is answered with status, sentence and end", async () => {
  const s = await asked(REQUEST + "unread");
  s.dials[0]!.answer.failed(
    new DialError("endpoint", "dial tcp: connect: connection refused"),
  );
  await settle();
  assert(
    s.received.text.startsWith(
      "HTTP/1.1 502 dial tcp: connect: connection refused\r\n",
    ),
  );
  assertStringIncludes(
    s.received.text,
    "\r\n\r\ndial tcp: connect: connection refused\n",
  );
  assertEquals([s.received.ended, s.refusals], [true, [502]]);
});

// deno-fmt-ignore: the columns are the point.
const STATUSES: readonly [reason: DialError["reason"], message: string, status: string][] = [
  ["no-agent",  "No agent available",              "503"],
  ["timeout",   "timed out",                       "504"],
  ["endpoint",  "dial tcp 1.2.3.4:5: i/o timeout", "504"],
  ["endpoint",  "socket: too many open files",     "503"],
  ["endpoint",  "no such host\r\nX: y",            "502"],
  ["link-lost", "agent lost",                      "502"],
];

Deno.test("a dial that fails is answered with the status of its reason", async () => {
  for (const [reason, message, status] of STATUSES) {
    const s = await asked();
    s.dials[0]!.answer.failed(new DialError(reason, message));
    await settle();
    const [statusLine, ...lines] = s.received.text.split("\r\n");
    assertEquals(statusLine!.split(" ")[1], status);
    // Nothing that an agent says may become a header line.
    assert(!lines.slice(0, lines.indexOf("")).includes("X: y"));
  }
});

Deno.test("a bad request is refused with a sentence", async () => {
  const s = await asked("GET / HTTP/1.1\r\n\r\n");
  assertStringIncludes(s.received.text, "HTTP/1.1 405 ");
  assertStringIncludes(s.received.text, "Allow: CONNECT\r\n");
  assertEquals(s.dials.length, 0);
});

Deno.test("a refused client that stays is disconnected", async () => {
  const s = await asked("GET / HTTP/1.1\r\n\r\n");
  await s.say("more");
  await s.passed(10_000);
  assertEquals(s.received.end, "reset");
});

Deno.test("a client that never finishes its head is told so", async () => {
  const s = await asked("CONNECT a:1 HT");
  await s.passed(CONNECT_HEAD_TIMEOUT_MS);
  assertStringIncludes(s.received.text, "HTTP/1.1 408 ");
});

Deno.test("an early 200 leaves before the answer, and bytes follow the dial", async () => {
  const s = await asked(REQUEST, { grantsEarly: true });
  assertEquals(s.received.text, OK);
  await s.say("question");
  assertEquals([s.sentEarly(), s.client.unconsumedBytes], ["question", 0]);
  await s.say("s, many of them");
  assertEquals(s.sentEarly(), "questions,", "no more than the dial takes");
  await s.connect();
  assertEquals(s.reached.text, " many of them");
  s.target.write(encode("answer"));
  await settle();
  assertEquals(s.received.pieces, [OK, "answer"]);
});

Deno.test("behind an early 200 a failed dial is a reset, and logged", async () => {
  const s = await asked(REQUEST, { grantsEarly: true });
  s.dials[0]!.answer.failed(new DialError("timeout", "too slow"));
  await settle();
  assertEquals([s.received.text, s.received.end, s.refusals], [OK, "reset", [
    504,
  ]]);
  assertEquals(s.timers.pendingCount, 0);
});

Deno.test("what is refused at once is refused in words, early 200 or not", async () => {
  const s = setUp({
    grantsEarly: true,
    dial: (_order, answer) => {
      answer.failed(new DialError("no-agent", "No agent available"));
      return { cancel: () => {} };
    },
  });
  await s.say(REQUEST);
  assertStringIncludes(s.received.text, "HTTP/1.1 503 No agent available");
  assertEquals(s.received.text.includes(OK), false);
});

Deno.test("a half-close behind an early 200 is one, even without a word", async () => {
  const s = await asked(REQUEST, { grantsEarly: true });
  await s.ends();
  assertEquals(s.dials[0]!.cancelled, false);
  await s.connect();
  assertEquals(s.reached.ended, true);
  s.target.write(encode("banner"));
  await s.passed(FIRST_HOLD_MS);
  await s.passed(FIRST_HOLD_MS);
  assertEquals(s.received.text, OK + "banner");
});

Deno.test("a client that is reset behind an early 200 gives its dial up", async () => {
  const s = await asked(REQUEST + "early", { grantsEarly: true });
  s.client.reset("gone");
  await settle();
  assertEquals(s.dials[0]!.cancelled, true);
});
