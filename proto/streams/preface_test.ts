import { assertEquals, assertThrows } from "@std/assert";
import { WireError } from "../frames/wire_error.ts";
import { CLIENT_PREFACE } from "./frame_writer.ts";
import { PrefaceMatcher } from "./frame_receiver.ts";

const SIZE = CLIENT_PREFACE.length;

Deno.test("the preface is taken in any two pieces, and not a byte behind it", () => {
  const bytes = new Uint8Array([...CLIENT_PREFACE, 1, 2, 3]);
  for (let at = 0; at <= bytes.length; at++) {
    const matcher = new PrefaceMatcher();
    const first = matcher.match(bytes.subarray(0, at));
    const second = matcher.match(bytes.subarray(at));
    assertEquals([first, first + second], [Math.min(at, SIZE), SIZE]);
    assertEquals(matcher.match(bytes), 0);
  }
});

Deno.test("every single wrong byte is refused, whatever stood before it", () => {
  for (let at = 0; at < SIZE; at++) {
    const matcher = new PrefaceMatcher();
    const bytes = CLIENT_PREFACE.slice();
    bytes[at]! ^= 0x20;
    matcher.match(bytes.subarray(0, at));
    const error = assertThrows(
      () => matcher.match(bytes.subarray(at)),
      WireError,
    );
    assertEquals(error.section, "3.4");
  }
});

Deno.test("the refusal shows a peer's first bytes, and only those", () => {
  const bytes = new TextEncoder().encode(
    `GET / HTTP/1.1\r\n${"x".repeat(99)}`,
  );
  const { message } = assertThrows(
    () => new PrefaceMatcher().match(bytes),
    WireError,
  );
  assertEquals(
    message,
    'Cannot accept the connection preface: saw "GET / HTTP/1.1\\r\\nxxxxxxxx", wanted HTTP/2 (RFC 9113 §3.4)',
  );
});
