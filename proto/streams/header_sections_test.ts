import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { HeaderField } from "../hpack/header_field.ts";
import { checkSection, type SectionKind } from "./header_sections.ts";

const REQUEST = ":method=GET :scheme=https :path=/ ";
const MALFORMED: readonly [SectionKind, string, string][] = [
  ["request", ":scheme=https :path=/", ":method is missing"],
  ["request", ":method=GET :path=/", ":scheme is missing"],
  ["request", ":method=GET :scheme=https", ":path is missing"],
  ["request", ":method=GET :scheme=https :path=", ":path is missing or empty"],
  ["request", REQUEST + ":path=/", '":path" is there twice'],
  ["request", REQUEST + ":status=200", '":status" does not belong'],
  ["request", REQUEST + ":protocol=websocket", '":protocol" does not belong'],
  ["request", REQUEST + "a=b :authority=x", "follows a regular field"],
  ["request", REQUEST + "Accept=x", "is no field name in lower case"],
  ["request", REQUEST + "=x", "is no field name in lower case"],
  ["request", REQUEST + "connection=close", "connection is specific"],
  ["request", REQUEST + "keep-alive=1", "keep-alive is specific"],
  ["request", REQUEST + "transfer-encoding=chunked", "is specific"],
  ["request", REQUEST + "upgrade=h2c", "upgrade is specific"],
  ["request", REQUEST + "te=gzip", 'te is "gzip"'],
  ["request", REQUEST + "content-length=-1", "content-length is no number"],
  [
    "request",
    REQUEST + "content-length=1 content-length=2",
    "two different content-lengths",
  ],
  ["request", REQUEST + "x=a\rb", "has a byte it must not"],
  ["request", REQUEST + "x=\tb", "has a byte it must not"],
  ["request", ":method=CONNECT :authority=a:1 :path=/", "CONNECT has"],
  ["request", ":method=CONNECT", "CONNECT names no target"],
  ["response", "server=x", ":status is missing"],
  ["response", ":status=2", ':status is "2"'],
  ["response", ":status=101", ":status is 101"],
  ["response", ":status=200 :path=/", '":path" does not belong'],
  ["trailers", ":status=200", '":status" does not belong'],
];

for (const [kind, text, problem] of MALFORMED) {
  Deno.test(`a ${kind} section is malformed: ${JSON.stringify(text)}`, () => {
    const check = checkSection(kind, fields(text));
    assert(!check.ok);
    assertStringIncludes(check.problem, problem);
  });
}

Deno.test("sections that are in order give their facts", () => {
  const request = checkSection(
    "request",
    fields(REQUEST + ":authority= te=trailers content-length=12"),
  );
  assertEquals(request, {
    ok: true,
    facts: { method: "GET", status: 0, contentLength: 12 },
  });
  assert(checkSection("request", fields(":method=CONNECT :authority=a:1")).ok);
  assert(checkSection("trailers", fields("grpc-status=0")).ok);
  assert(checkSection("response", fields(":status=204 x=")).ok);
});

function fields(text: string): HeaderField[] {
  return text.replace(/ $/, "").split(" ").map((pair) => {
    const at = pair.indexOf("=");
    return { name: pair.slice(0, at), value: pair.slice(at + 1) };
  });
}
