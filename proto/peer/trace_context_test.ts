import { assertEquals } from "@std/assert";
import { formatTraceparent, readTraceparent } from "./trace_context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

Deno.test("a traceparent is read and written", () => {
  const text = `00-${TRACE}-${SPAN}-01`;
  const context = readTraceparent([text])!;
  assertEquals(context, { traceId: TRACE, spanId: SPAN, flags: 1 });
  assertEquals(formatTraceparent(context), text);
});

Deno.test("of the flags those we know are passed on", () => {
  const context = readTraceparent([`00-${TRACE}-${SPAN}-ff`])!;
  assertEquals(formatTraceparent(context), `00-${TRACE}-${SPAN}-03`);
});

Deno.test("a later version may have more behind it", () => {
  for (const more of ["", "-", "-what-the-future-will-be-like"]) {
    const context = readTraceparent([`cc-${TRACE}-${SPAN}-01${more}`]);
    assertEquals(context?.spanId, SPAN);
  }
  assertEquals(readTraceparent([`cc-${TRACE}-${SPAN}-01.what`]), undefined);
});

Deno.test("what is not exactly right is no context", () => {
  const good = `00-${TRACE}-${SPAN}-01`;
  for (
    const values of [
      [],
      [""],
      [good, good],
      [`${good}-more`],
      [`${good} `],
      [` ${good}`],
      [`${good}\n`],
      [`ff-${TRACE}-${SPAN}-01`],
      [`0-${TRACE}-${SPAN}-01`],
      [`00-${TRACE.toUpperCase()}-${SPAN}-01`],
      [`00-${"0".repeat(32)}-${SPAN}-01`],
      [`00-${TRACE}-${"0".repeat(16)}-01`],
      [`00-${TRACE}-${SPAN}-1`],
      [`00-${TRACE}-${SPAN}`],
      [`00-${TRACE.slice(1)}-${SPAN}-01`],
      [`cc-${TRACE}-${SPAN}-01-${"x".repeat(300)}`],
    ]
  ) assertEquals(readTraceparent(values), undefined, values.join("|"));
});
