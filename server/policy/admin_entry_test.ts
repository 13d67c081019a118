import { assertEquals, assertThrows } from "@std/assert";
import { FieldError } from "../../platform/documents/document_map.ts";
import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { Policy } from "./policy.ts";

function person(commonName: string, ...organizations: string[]): PeerIdentity {
  return {
    kind: "certificate",
    commonName,
    fingerprint: "00",
    names: ["DNS:desk.example"],
    certificate: {
      organizations,
      publicKeySha256: "",
      serialNumber: "",
      der: new Uint8Array(),
      notAfterMs: 0,
    },
  };
}

Deno.test("the most that an entry says of somebody is their role", () => {
  const policy = new Policy({
    admins: [
      { organization: "ops", role: "view" },
      { commonName: "alice", organization: "ops", role: "operate" },
      { subjectAltName: "DNS:desk.*", commonName: "carol", role: "view" },
      { uid: 1000, role: "operate" },
      { uid: 1001, role: "view" },
    ],
  });
  const role = (identity: PeerIdentity) => policy.adminRoleOf({ identity });
  assertEquals(role(person("alice", "ops")), "operate");
  assertEquals(role(person("alice")), undefined);
  assertEquals(role(person("bob", "dev", "ops")), "view");
  assertEquals(role(person("carol")), "view");
  assertEquals(role(person("dave")), undefined);
  assertEquals(role(ANONYMOUS), undefined);
  assertEquals(policy.adminRoleOf({ uid: 1000 }), "operate");
  assertEquals(policy.adminRoleOf({ uid: 1001 }), "view");
  assertEquals(policy.adminRoleOf({ uid: 0 }), undefined);
});

Deno.test("a star is about everybody with a certificate, and about no process", () => {
  const policy = new Policy({ admins: [{ commonName: "*", role: "view" }] });
  assertEquals(policy.adminRoleOf({ identity: person("x") }), "view");
  assertEquals(policy.adminRoleOf({ identity: ANONYMOUS }), undefined);
  assertEquals(policy.adminRoleOf({ uid: 1000 }), undefined);
});

Deno.test("an entry that says nobody, or no role, is refused with its place", () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [entry: unknown, place: string, problem: RegExp])[] = [
    [{ role: "view" },                             "admins.0",      /it says nobody/],
    [{ commonName: "a" },                          "admins.0.role", /wanted "view" or "operate"/],
    [{ commonName: "a", role: "admin" },           "admins.0.role", /wanted view, operate/],
    [{ commonName: "a", uid: 1, role: "view" },    "admins.0.uid",  /make two entries/],
    [{ uid: -1, role: "view" },                    "admins.0.uid",  /saw -1/],
    [{ commonName: "", role: "view" },             "admins.0.commonName", /./],
    [{ name: "a", role: "view" },                  "admins.0.name", /no such field/],
  ];
  for (const [entry, place, problem] of cases) {
    const error = assertThrows(
      () => new Policy({ admins: [entry] }),
      FieldError,
    );
    assertEquals(error.place.join("."), place, JSON.stringify(entry));
    assertEquals(problem.test(error.problem), true, error.problem);
  }
});
