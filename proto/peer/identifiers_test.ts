import { assertEquals, assertThrows } from "@std/assert";
import {
  formatIdentifiers,
  IDENTIFIERS_LENGTH_MAX,
  IdentifiersError,
  NO_IDENTIFIERS,
  parseIdentifiers,
} from "./identifiers.ts";

Deno.test("identifiers are read from a URL query", () => {
  assertEquals(
    parseIdentifiers(
      "host=node1&host=node2&ipv4=1.2.3.4&ipv6=%3A%3A1&cidr=10.0.0.0/8" +
        "&uid=U-1&default-route=true",
      "flag",
    ),
    {
      host: ["node1", "node2"],
      ipv4: ["1.2.3.4"],
      ipv6: ["::1"],
      cidr: ["10.0.0.0/8"],
      uid: ["u-1"],
      defaultRoute: true,
    },
  );
});

Deno.test("nothing is announced by an empty text", () => {
  assertEquals(parseIdentifiers("", "flag"), NO_IDENTIFIERS);
});

Deno.test("equal hosts get one spelling", () => {
  const read = parseIdentifiers(
    "host=NODE1.Example&host=node1.example&ipv6=0:0:0:0:0:0:0:1&ipv6=::1" +
      "&ipv6=2001:DB8::a",
    "flag",
  );
  assertEquals(read.host, ["node1.example"]);
  assertEquals(read.ipv6, ["::1", "2001:db8::a"]);
});

Deno.test("the first default-route counts, in Go's spellings of true", () => {
  const read = (text: string) => parseIdentifiers(text, "server").defaultRoute;
  for (const text of ["1", "t", "T", "true", "TRUE", "True"]) {
    assertEquals(read(`default-route=${text}`), true, text);
  }
  for (const text of ["", "0", "false", "yes", "tRUE", "maybe"]) {
    assertEquals(read(`default-route=${text}`), false, text);
  }
  assertEquals(read("default-route=false&default-route=true"), false);
});

Deno.test("a server lets pass what an agent's own flag refuses", () => {
  for (
    const text of [
      "zone=eu",
      "ipv4=localhost",
      "ipv4=::1",
      "ipv6=nonsense",
      "cidr=10.0.0.0",
      "cidr=10.0.0.0/33",
    ]
  ) {
    parseIdentifiers(text, "server");
    assertThrows(() => parseIdentifiers(text, "flag"), IdentifiersError);
  }
  assertEquals(parseIdentifiers("zone=eu", "server"), NO_IDENTIFIERS);
});

Deno.test("what is no URL query is refused by both", () => {
  for (const text of ["host=%zz", "host=%", "%ff=a", "host=a;ipv4=b"]) {
    for (const reader of ["server", "flag"] as const) {
      assertThrows(() => parseIdentifiers(text, reader), IdentifiersError);
    }
  }
  assertThrows(
    () => parseIdentifiers("a".repeat(IDENTIFIERS_LENGTH_MAX + 1), "server"),
    IdentifiersError,
  );
});

Deno.test("a name that looks like another one on every screen is none", () => {
  for (
    const text of [
      "gw%00",
      "%20gw",
      "gw%e2%80%8b",
      "g%c2%adw",
      "gw%0a",
      "%C2%9Bgw",
    ]
  ) {
    for (const key of ["host", "uid"]) {
      const query = `${key}=${text}&${key}=edge-1`;
      const read = parseIdentifiers(query, "server");
      assertEquals([...read.host, ...read.uid], ["edge-1"], text);
      assertThrows(
        () => parseIdentifiers(query, "flag"),
        IdentifiersError,
        "characters that nobody sees",
      );
    }
  }
});

Deno.test("what is written is read again", () => {
  const identifiers = {
    host: ["a-b", "ü&x=1"],
    ipv4: ["1.2.3.4"],
    ipv6: ["::1"],
    cidr: ["fd00::/8"],
    uid: ["%"],
    defaultRoute: true,
  };
  const text = formatIdentifiers(identifiers);
  assertEquals(parseIdentifiers(text, "flag"), identifiers);
  assertEquals(/^[ -~]*$/.test(text), true, "metadata is printable ASCII");
});
