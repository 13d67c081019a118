import { assertEquals, assertThrows } from "@std/assert";
import { FieldError } from "../../platform/documents/document_map.ts";
import { Policy } from "./policy.ts";

const SERVICES = ["default/web", "shop/cart", "shop/admin", "bank/ledger"];

function seen(policy: Policy, node: string): string {
  const { sees } = policy.visibleTo(node);
  return SERVICES.filter(sees).join(" ");
}

Deno.test("a policy without discovery hides nothing", () => {
  assertEquals(seen(new Policy({ nodes: [] }), "n"), SERVICES.join(" "));
});

Deno.test("a policy whose discovery is empty hides everything", () => {
  assertEquals(seen(new Policy({ discovery: [] }), "n"), "");
});

Deno.test("a node sees what entries about it allow and none denies", () => {
  const policy = new Policy({
    discovery: [
      { node: "*", allow: ["default/*"] },
      { node: "edge-*", allow: ["shop/*"] },
      { node: "edge-7", allow: ["*"], deny: ["shop/admin"] },
      { node: "OPS", allow: ["*"] },
      { node: "mute", deny: ["*"] },
    ],
  });
  assertEquals(seen(policy, "edge-1"), "default/web shop/cart shop/admin");
  assertEquals(seen(policy, "edge-7"), "default/web shop/cart bank/ledger");
  assertEquals(seen(policy, "ops"), SERVICES.join(" "));
  assertEquals(seen(policy, "other"), "default/web");
  assertEquals(seen(policy, "mute"), "");
  // Who is nobody's node is only among "*".
  assertEquals(seen(policy, ""), "default/web");
});

Deno.test("nodes that see the same are of one class", () => {
  const policy = new Policy({
    discovery: [
      { node: "a", allow: ["x/*", "y/*"], deny: ["x/z"] },
      { node: "b", allow: ["y/*"], deny: ["x/z"] },
      { node: "b", allow: ["x/*"] },
      { node: "c", allow: ["x/*", "y/*"] },
    ],
  });
  const idOf = (node: string) => policy.visibleTo(node).id;
  assertEquals(idOf("a"), idOf("b"));
  assertEquals(new Set(["a", "c", "d"].map(idOf)).size, 3);
});

Deno.test("an entry that cannot be meant is refused by its place", () => {
  const cases: readonly (readonly [entry: unknown, problem: string])[] = [
    [{ allow: ["*"] }, "discovery[0].node: it is missing"],
    [{ node: "n" }, "discovery[0]: it neither allows nor denies anything"],
    [
      { node: "n", allow: ["web"] },
      'discovery[0].allow[0]: saw "web", wanted NAMESPACE/NAME such as default/web or web/*',
    ],
    [{ node: "n", see: ["*"] }, "discovery[0].see: there is no such field"],
    [
      { node: "n", allow: "*" },
      "discovery[0].allow: saw a string, wanted a list",
    ],
  ];
  for (const [entry, problem] of cases) {
    assertThrows(() => new Policy({ discovery: [entry] }), FieldError, problem);
  }
});
