import { assert, assertEquals } from "@std/assert";
import { AREAS, CODES, knownCode, tunnelCodeOf, withCode } from "./codes.ts";
import { COMMAND_LINE } from "./command_line.ts";
import { DIALS } from "./dials.ts";
import { JOINING } from "./joining.ts";
import { LINKS } from "./links.ts";
import { MACHINE } from "./machine.ts";
import { RETIRED } from "./retired.ts";
import { DISCOVERY, POLICY, SERVERS } from "./servers.ts";
import { TLS } from "./tls.ts";

const PARTS = [
  COMMAND_LINE,
  TLS,
  JOINING,
  LINKS,
  DIALS,
  POLICY,
  DISCOVERY,
  SERVERS,
  MACHINE,
];

Deno.test("each file has the codes of its area, in order, and none twice", () => {
  PARTS.forEach((part, index) => {
    const codes = Object.keys(part);
    assertEquals(codes, codes.toSorted());
    for (const code of codes) {
      assert(/^TUN\d{3}$/.test(code), code);
      assertEquals(code[3], `${index + 1}`, `${code} is of another area`);
    }
  });
  const all = PARTS.flatMap((part) => Object.keys(part));
  assertEquals(new Set(all).size, all.length);
  assertEquals(Object.keys(CODES).length, all.length);
  assertEquals(Object.keys(AREAS).length, PARTS.length);
});

Deno.test("a retired code does not come back, and means its successor", () => {
  const slugs = new Set(Object.values(CODES).map(({ slug }) => slug));
  for (const [code, [slug, by]] of Object.entries(RETIRED)) {
    assert(!Object.hasOwn(CODES, code), code);
    assert(!slugs.has(slug), slug);
    assertEquals(knownCode(code), by);
    assertEquals(knownCode(by), by);
  }
  assertEquals(knownCode("toString"), undefined);
  assertEquals(knownCode("TUN999"), undefined);
});

Deno.test("each row says something, and no slug is there twice", () => {
  const slugs = new Set<string>();
  for (const [code, row] of Object.entries(CODES)) {
    assert(/^[a-z]+(-[a-z0-9]+)*$/.test(row.slug), code);
    assert(!slugs.has(row.slug), `${row.slug} is there twice`);
    slugs.add(row.slug);
    assert(!row.title.endsWith("."), `${code}: a title has no full stop`);
    assert(row.title.length <= 76, `${code}: the title is too long`);
    assert(row.means.endsWith("."), code);
    assert(row.causes.length > 0 && row.mend.length > 0, code);
    assert(/^(?:reference\/)?[a-z-]+\.md(#.+)?$/.test(row.see), code);
  }
});

Deno.test("the code of an error is its own, or that of its cause", () => {
  const inner = Object.assign(new Error("inner"), { tunnelCode: "TUN503" });
  const outer = new Error("outer", { cause: inner });
  assertEquals(tunnelCodeOf(inner), "TUN503");
  assertEquals(tunnelCodeOf(outer), "TUN503");
  assertEquals(tunnelCodeOf(new Error("none")), undefined);
  assertEquals(tunnelCodeOf("text"), undefined);
  const foreign = Object.assign(new Error("x"), { tunnelCode: "toString" });
  assertEquals(tunnelCodeOf(foreign), undefined);
  const circle = new Error("circle");
  circle.cause = circle;
  assertEquals(tunnelCodeOf(circle), undefined);
});

Deno.test("a sentence ends with its code", () => {
  assertEquals(withCode("It fails", "TUN503"), "It fails [TUN503]");
  assertEquals(withCode("It fails", undefined), "It fails");
});
