import { assert, assertEquals, assertMatch } from "@std/assert";
import { oddCertificates } from "../../tests/support/certificates/odd_certificates.ts";
import {
  alternativeNamesOf,
  clocksOf,
  holderOf,
  WORDS_LENGTH_MAX,
} from "./certificate_words.ts";

Deno.test("whose an odd certificate is can always be said, in one line", () => {
  for (const { name, der } of oddCertificates()) {
    for (const words of [holderOf(der), alternativeNamesOf(der)]) {
      assert(words !== "", name);
      assert(words.length < 3 * WORDS_LENGTH_MAX, name);
      assert(!/[\p{Cc}\p{Cf}]/u.test(words), name);
    }
  }
});

Deno.test("what a certificate lacks is said in its place", () => {
  const odd = oddCertificates();
  const of = (name: string) => holderOf(odd.find((c) => c.name === name)!.der);
  assertMatch(
    of("an empty subject"),
    /^no subject; issued by no issuer; valid from (\S+Z) until (\S+Z)$/,
  );
  assertMatch(of("a T61String"), /^a name that cannot be read; issued by a na/);
  assertEquals(of("dates that are none"), "a certificate that cannot be read");
  assertEquals(
    holderOf(new Uint8Array(0)),
    "a certificate that cannot be read",
  );
});

Deno.test("both clocks are shown in one style", () => {
  const odd = oddCertificates();
  const { der } = odd.find(({ name }) => name === "an empty subject")!;
  const iso = String.raw`\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z`;
  assertMatch(
    clocksOf(der, 0),
    new RegExp(
      `^it is valid from ${iso} until ${iso}, and ` +
        "our clock says 1970-01-01T00:00Z$",
    ),
  );
  for (const unreadable of [undefined, new Uint8Array(3)]) {
    assertEquals(
      clocksOf(unreadable, 0),
      "our clock says 1970-01-01T00:00Z",
    );
  }
});
