import { assert, assertEquals, assertThrows } from "@std/assert";
import { forAll } from "../../tests/support/memory/prng.ts";
import {
  type ConnectAnswer,
  ConnectAnswerReader,
  REFUSAL_BODY_BYTES_MAX,
} from "./connect_answer.ts";
import { MessageError } from "./refusal.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** Feeds `text` in pieces of `size` bytes; @returns the answer, and the rest. */
function answerTo(
  text: string,
  size = Infinity,
): { answer: ConnectAnswer | undefined; rest: string } {
  const response = new ConnectAnswerReader("it");
  const bytes = encode(text);
  for (let at = 0; at < bytes.length; at += size) {
    const answer = response.push(bytes.subarray(at, at + size));
    if (answer !== undefined) {
      const rest = new TextDecoder().decode(bytes.subarray(at + size));
      return { answer, rest };
    }
  }
  return { answer: response.end(), rest: "" };
}

/** As a value that compares by its text. */
function shown(answer: ConnectAnswer | undefined): string {
  return JSON.stringify(
    answer,
    (_, value) => value instanceof Uint8Array ? `${value}` : value,
  );
}

Deno.test("a 200 opens the tunnel and keeps what stands behind it", () => {
  const { answer } = answerTo("HTTP/1.1 200 Connection Established\r\n\r\nhi");
  assert(answer?.kind === "granted");
  assertEquals(answer.early, encode("hi"));
});

Deno.test("any 2xx opens the tunnel, and 1xx says nothing yet", () => {
  for (
    const head of ["HTTP/1.0 204", "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 201 "]
  ) {
    assertEquals(answerTo(`${head}\r\n\r\n`).answer?.kind, "granted");
    assertEquals(answerTo(`${head}\r\n\r\n`, 1).answer?.kind, "granted");
  }
});

Deno.test("a refusal is its body, however long that was said to be", () => {
  const refused = (status: number, sentence: string): ConnectAnswer => ({
    kind: "refused",
    status,
    sentence,
    code: undefined,
  });
  const cases: [string, ConnectAnswer][] = [
    [
      "503 No\r\nContent-Length: 9\r\n\r\nno agent\nMORE",
      refused(503, "no agent"),
    ],
    // To the end of the connection, as upstream does.
    [
      "502 Bad Gateway\r\n\r\nconnection\r\n refused",
      refused(502, "connection refused"),
    ],
    ["504 Gateway Timeout\r\n\r\n", refused(504, "Gateway Timeout")],
    ["500 \r\nContent-Length: 0\r\n\r\n", refused(500, "no reason was given")],
    [
      "405 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
      refused(405, "No"),
    ],
    ["502 x\r\n\r\n\x1b[2Jcleared", refused(502, "[2Jcleared")],
    [
      "502 x\r\ntunnel-code: TUN503\r\n\r\nno",
      { ...refused(502, "no"), code: "TUN503" } as ConnectAnswer,
    ],
    ["502 x\r\ntunnel-code: TUN000\r\n\r\nno", refused(502, "no")],
  ];
  for (const [text, answer] of cases) {
    assertEquals(answerTo(`HTTP/1.1 ${text}`).answer, answer);
    assertEquals(answerTo(`HTTP/1.1 ${text}`, 1).answer, answer);
  }
});

Deno.test("a refusal without end is shown up to a limit", () => {
  const { answer } = answerTo(
    "HTTP/1.1 502 x\r\n\r\n" + "y".repeat(2 * REFUSAL_BODY_BYTES_MAX),
    1000,
  );
  assert(answer?.kind === "refused");
  assertEquals(answer.sentence.length, REFUSAL_BODY_BYTES_MAX);
});

Deno.test("what is no answer to CONNECT opens nothing", () => {
  for (
    const text of [
      "SSH-2.0-banner\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
      "HTTP/1.1 502 No\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
    ]
  ) {
    assertThrows(() => answerTo(text), MessageError);
    assertThrows(() => answerTo(text, 1), MessageError);
  }
});

Deno.test("an end inside the head is no answer", () => {
  assertEquals(answerTo("HTTP/1.1 200 OK\r\n").answer, undefined);
});

Deno.test("the cutting of an answer changes nothing", async () => {
  const texts = [
    "HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\n\nearly bytes \r\n\r\n",
    "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 502 y\r\nContent-Length: 6\r\n\r\nréson",
  ];
  await forAll(200, (random) => {
    const text = random.pick(texts);
    const size = 1 + random.below(60);
    const whole = answerTo(text).answer;
    const { answer, rest } = answerTo(text, size);
    if (answer?.kind !== "granted") return assertEquals(answer, whole);
    // What a later piece holds is the tunnel's, not the head's.
    assert(whole?.kind === "granted");
    const early = new TextDecoder().decode(answer.early) + rest;
    assertEquals(
      shown({ kind: "granted", early: encode(early) }),
      shown(whole),
    );
  });
});
