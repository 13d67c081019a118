import { assertEquals } from "@std/assert";
import { tokenSaying } from "../../tests/support/peers/service_account_tokens.ts";
import { TOKEN_LENGTH_MAX } from "../../neighbours/kubernetes/access.ts";
import { flawOf, TOKEN_CLOCK_SKEW_MS } from "./token_authenticator.ts";

const WANTED = {
  namespace: "kube-system",
  serviceAccount: "agent",
  audience: "tunnel",
};
const SUB = "system:serviceaccount:kube-system:agent";
const NOW_MS = 1_800_000_000_000;

function flaw(token: string) {
  return flawOf(token, WANTED, NOW_MS);
}

function why(token: string): string | undefined {
  const found = flaw(token);
  return found?.kind === "invalid" ? found.why : found?.kind;
}

Deno.test("a token that may be good has no flaw", () => {
  for (
    const claims of [
      { sub: SUB, aud: ["tunnel"], exp: NOW_MS / 1_000 + 1 },
      { sub: SUB, aud: ["other", "tunnel"] },
      { sub: SUB, aud: "tunnel" },
      // Out of a Secret: no audience, and it never ends.
      { sub: SUB, iss: "kubernetes/serviceaccount" },
      {
        sub: SUB,
        aud: ["tunnel"],
        exp: (NOW_MS - TOKEN_CLOCK_SKEW_MS) / 1_000,
      },
      { sub: SUB, aud: ["tunnel"], exp: "never" },
    ]
  ) assertEquals(flaw(tokenSaying(claims)), undefined);
});

Deno.test("what is no token of a ServiceAccount is seen without asking", () => {
  const good = tokenSaying({ sub: SUB, aud: ["tunnel"] });
  const [head, payload, signature] = good.split(".");
  const none = "it is not a ServiceAccount's token";
  for (
    const token of [
      "",
      "t",
      "a.b.c",
      `${head}.${payload}`,
      `${head}.${payload}.`,
      `.${payload}.${signature}`,
      `${good}.more`,
      `${payload}.${payload}.${signature}`,
      `${head}.${btoa("[1]")}.${signature}`,
      `${head}.${btoa("null")}.${signature}`,
      `${head}.${btoa("{")}.${signature}`,
      `${good}${"A".repeat(TOKEN_LENGTH_MAX)}`,
    ]
  ) assertEquals(why(token), none, token.slice(0, 200));
});

Deno.test("whose it says it is decides, unproven, only against it", () => {
  assertEquals(why(tokenSaying({})), "it names no ServiceAccount");
  assertEquals(why(tokenSaying({ sub: 7 })), "it names no ServiceAccount");
  assertEquals(
    why(tokenSaying({ sub: "system:node:edge" })),
    "it names no ServiceAccount",
  );
  const other = "system:serviceaccount:default:agent";
  assertEquals(flaw(tokenSaying({ sub: other, aud: ["tunnel"] })), {
    kind: "other-user",
    username: other,
  });
});

Deno.test("another audience and an end that is long past are seen", () => {
  assertEquals(
    why(tokenSaying({ sub: SUB, aud: ["vault"] })),
    'it is not meant for audience "tunnel"',
  );
  assertEquals(
    why(tokenSaying({ sub: SUB, aud: [] })),
    'it is not meant for audience "tunnel"',
  );
  const exp = (NOW_MS - TOKEN_CLOCK_SKEW_MS) / 1_000 - 1;
  assertEquals(
    why(tokenSaying({ sub: SUB, aud: ["tunnel"], exp })),
    "it has expired",
  );
});
