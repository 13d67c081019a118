import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import { formatIdentifiers } from "../../proto/peer/identifiers.ts";
import type { Caller } from "./caller.ts";
import { FieldError } from "../../platform/documents/field_error.ts";
import { ENTRIES_MAX, Policy } from "./policy.ts";
import {
  ANONYMOUS,
  type PeerIdentity,
} from "../../proto/peer/peer_identity.ts";
import {
  POLICY_BYTES_MAX,
  PolicyError,
  PolicyFile,
  readPolicy,
} from "./authorization.ts";

const tcp = (address: string) => ({ protocol: "tcp", address });

/** `+rule` or `-rule (note)`. */
function evaluated(
  policy: Policy,
  caller: Caller,
  nodes: readonly string[],
  address: string,
): string {
  const { isAllowed, rule, note } = policy.evaluate(
    caller,
    nodes,
    tcp(address),
  );
  const why = note === undefined ? "" : ` (${note})`;
  return `${isAllowed ? "+" : "-"}${rule}${why}`;
}

const API = certifiedCaller("kube-apiserver", {
  organizations: ["system:masters"],
  names: ["DNS:api.example", "URI:spiffe://x/api"],
});

Deno.test("a policy without frontends restricts nobody", () => {
  const policy = new Policy({ nodes: [] });
  assertEquals(
    evaluated(policy, API, ["n"], "10.0.0.1:80"),
    "+none were given",
  );
});

Deno.test("a policy whose frontends are none lets nobody in", () => {
  const policy = new Policy({ frontends: [] });
  assertEquals(
    evaluated(policy, API, ["n"], "10.0.0.1:80"),
    "- (no frontends entry is about CN=kube-apiserver)",
  );
});

Deno.test("an entry is about callers by all that it says of them", () => {
  const allow = ["*:*:*"];
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [who: Record<string, string>, caller: Caller, isAbout: boolean])[] = [
    [{ commonName: "kube-apiserver" },            API,  true ],
    [{ commonName: "kube-*" },                    API,  true ],
    [{ commonName: "KUBE-APISERVER" },            API,  false],
    [{ commonName: "kube" },                      API,  false],
    [{ organization: "system:masters" },          API,  true ],
    [{ organization: "system:nodes" },            API,  false],
    [{ subjectAltName: "DNS:*.example" },         API,  true ],
    [{ subjectAltName: "URI:spiffe://x/*" },      API,  true ],
    [{ subjectAltName: "*.other" },               API,  false],
    [{ commonName: "kube-apiserver", organization: "system:nodes" }, API, false],
    [{ commonName: "kube-apiserver", organization: "system:*" },     API, true ],
    [{ socket: "*" },                             API,  false],
    [{ commonName: "*" },           socketCaller(),     false],
    [{ subjectAltName: "*" },       socketCaller(),     false],
    [{ socket: "/run/tunnel.sock" }, socketCaller(),    true ],
    [{ socket: "/run/*" },          socketCaller(),     true ],
    [{ socket: "/run/other.sock" }, socketCaller(),     false],
  ];
  for (const [who, caller, isAbout] of cases) {
    const policy = new Policy({ frontends: [{ ...who, allow }] });
    const decision = evaluated(policy, caller, ["n"], "10.0.0.1:80");
    assertEquals(decision.startsWith("+"), isAbout, JSON.stringify(who));
  }
});

Deno.test("an entry is about the nodes it names, by any name of the agent", () => {
  const policy = new Policy({
    frontends: [
      { commonName: "*", nodes: ["edge-*"], allow: ["tcp:*:80"] },
    ],
  });
  const evaluate = (...nodes: string[]) =>
    evaluated(policy, API, nodes, "a:80");
  assertEquals(evaluate("edge-7"), "+frontends[0].allow[0] tcp:*:80");
  assertEquals(evaluate("id-1", "EDGE-7"), "+frontends[0].allow[0] tcp:*:80");
  assertEquals(
    evaluate("core-7"),
    "- (no entry about CN=kube-apiserver is about node core-7)",
  );
  assertEquals(
    evaluate(),
    "- (no entry about CN=kube-apiserver is about no node)",
  );
});

Deno.test("what one entry denies no other one allows", () => {
  const policy = new Policy({
    frontends: [
      { commonName: "*", allow: ["tcp:*:*"] },
      { organization: "system:*", deny: ["tcp:169.254.0.0/16:*", "tcp:*:22"] },
      { commonName: "other", deny: ["tcp:*:*"] },
    ],
  });
  const evaluate = (address: string) => evaluated(policy, API, ["n"], address);
  assertEquals(evaluate("10.0.0.1:80"), "+frontends[0].allow[0] tcp:*:*");
  assertEquals(evaluate("10.0.0.1:22"), "-frontends[1].deny[1] tcp:*:22");
  assertEquals(
    evaluate("169.254.169.254:80"),
    "-frontends[1].deny[0] tcp:169.254.0.0/16:*",
  );
  // Nobody here knows the addresses of a name, so the deny rule may fit.
  assert(evaluate("metadata:80").startsWith("-frontends[1].deny[0]"));
  const plain = certifiedCaller("plain");
  assertEquals(
    evaluated(policy, plain, ["n"], "metadata:80"),
    "+frontends[0].allow[0] tcp:*:*",
  );
});

Deno.test("a node may claim what all entries about it grant", () => {
  const policy = new Policy({
    nodes: [
      { name: "edge-*", identifiers: ["cidr=10.0.0.0/8", "ipv4=192.0.2.7"] },
      { name: "Edge-1", identifiers: ["default-route=true", "ipv6=FD00:0::7"] },
    ],
  });
  const granted = (node: string) =>
    formatIdentifiers(policy.grantsOf(node)).replaceAll("%2F", "/")
      .replaceAll("%3A", ":");
  assertEquals(
    granted("EDGE-1"),
    "ipv4=192.0.2.7&ipv6=fd00::7&cidr=10.0.0.0/8&default-route=true",
  );
  assertEquals(granted("edge-2"), "ipv4=192.0.2.7&cidr=10.0.0.0/8");
  assertEquals(granted("core-1"), "");
});

Deno.test("names of services are free until somebody says whose they are", () => {
  const free = new Policy({
    nodes: [{ name: "edge-*", identifiers: ["ipv4=192.0.2.7"] }],
  });
  assert(free.mayOffer("any", "default/web"));
  const named = new Policy({
    nodes: [
      { name: "edge-*", services: ["shop/*", "default/web"] },
      { name: "edge-1", services: ["infra/dns"] },
      { name: "core", identifiers: [] },
    ],
  });
  const may = (node: string, ...services: string[]) =>
    services.filter((service) => named.mayOffer(node, service));
  const all = ["shop/a", "default/web", "infra/dns", "default/webs"];
  assertEquals(may("EDGE-1", ...all), ["shop/a", "default/web", "infra/dns"]);
  assertEquals(may("edge-2", ...all), ["shop/a", "default/web"]);
  assertEquals(may("core", ...all), []);
  assertEquals(may("", ...all), []);
});

// deno-fmt-ignore: a case is a line.
const REFUSED: readonly (readonly [document: unknown, says: string])[] = [
  [null, "the document: saw nothing, wanted a map of frontends, nodes"],
  [[], "the document: saw a list"],
  [{ frontend: [] }, "frontend: there is no such field; did you mean frontends?"],
  [{ frontends: {} }, "frontends: saw a map, wanted a list"],
  [{ frontends: [7] }, "frontends[0]: saw a number, wanted a map of commonName"],
  [{ frontends: [{ allow: [] }] }, "frontends[0]: it names no caller; add one of commonName"],
  [{ frontends: [{ commonName: "a" }] }, "frontends[0]: it neither allows nor denies"],
  [{ frontends: [{ commonName: "a", allow: "tcp:*:*" }] }, "frontends[0].allow: saw a string, wanted a list"],
  [
    { frontends: [{ commonName: "a", allow: ["tcp:*:*", null] }] },
    "frontends[0].allow[1]: saw nothing, wanted a value",
  ],
  [{ frontends: [{ commonName: "", allow: [] }] }, "frontends[0].commonName: saw an empty text"],
  [
    { frontends: [{ commonName: "a", allow: [] }, { cn: "a", allow: [] }] },
    "frontends[1].cn: there is no such field",
  ],
  [
    { frontends: [{ commonName: "a", socket: "/s", allow: [] }] },
    "frontends[0].socket: a caller on a unix socket shows no certificate",
  ],
  [
    { frontends: [{ commonName: "a", deny: ["tcp:*:*", "tcp:10.0.0.7/8:*"] }] },
    'frontends[0].deny[1]: Cannot read the rule "tcp:10.0.0.7/8:*", column 5',
  ],
  [{ nodes: [{ name: "a", services: ["web"] }] }, 'nodes[0].services[0]: saw "web", wanted NAMESPACE/NAME'],
  [{ dials: [{ allow: [] }] }, "dials[0].node: it is missing; add the name"],
  [{ dials: [{ node: "a" }] }, "dials[0]: it neither allows nor denies anything; add allow or deny"],
  [{ dials: [{ node: "a", allow: ["tcp:a"] }] }, 'dials[0].allow[0]: Cannot read the rule "tcp:a"'],
  [{ nodes: [{ name: "a" }] }, "nodes[0]: it grants neither identifiers nor services; add one of them"],
  [{ nodes: [{ identifiers: [] }] }, "nodes[0].name: it is missing; add it"],
  [{ nodes: [{ name: "a", identifiers: ["host=b"] }] }, 'nodes[0].identifiers[0]: "host" cannot be granted'],
  [
    { nodes: [{ name: "a", identifiers: ["ipv4=b"] }] },
    "nodes[0].identifiers[0]: Cannot read the agent identifier ipv4=b",
  ],
  [
    { nodes: [{ name: "a", identifiers: ["route=b"] }] },
    'nodes[0].identifiers[0]: Cannot use the agent identifier "route"',
  ],
  [{ nodes: Array(ENTRIES_MAX + 1).fill({}) }, "nodes: saw 1001 entries, 1000 are allowed"],
];

Deno.test("a document is refused by the place of what is wrong", () => {
  for (const [document, says] of REFUSED) {
    const error = assertThrows(() => new Policy(document), FieldError);
    assert(error.message.startsWith(says), error.message);
  }
});

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
    [{ role: "view" },                             "admins.0",      /it names no person/],
    [{ commonName: "a" },                          "admins.0.role", /wanted "view" or "operate"/],
    [{ commonName: "a", role: "admin" },           "admins.0.role", /wanted view, operate/],
    [{ commonName: "a", uid: 1, role: "view" },    "admins.0.uid",  /make two entries/],
    [{ uid: -1, role: "view" },                    "admins.0.uid",  /saw -1/],
    [{ commonName: "", role: "view" },             "admins.0.commonName", /./],
    [{ name: "a", role: "view" },                  "admins.0.name", /no such field/],
    [{ constructor: "a", role: "view" },           "admins.0.constructor", /no such field/],
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

const OPEN = `
frontends:
  - commonName: "*"
    allow: ["tcp:*:*"]
`;

const mayDial = (file: { current: ReturnType<typeof readPolicy> }) =>
  file.current.evaluate(certifiedCaller("a"), ["n"], {
    protocol: "tcp",
    address: "10.0.0.1:80",
  }).isAllowed;

async function inFile(
  work: (path: string) => Promise<void>,
  name = "policy.yaml",
) {
  const folder = await Deno.makeTempDir({ prefix: "policy-" });
  try {
    await work(`${folder}/${name}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a new file counts after a reload, a bad one leaves the old one", () =>
  inFile(async (path) => {
    await Deno.writeTextFile(path, OPEN);
    const file = new PolicyFile(path);
    assertEquals([mayDial(file), file.reload()], [true, false]);
    for (
      const bad of [
        "",
        "frontends: [",
        "frontends: 7",
        "x".repeat(POLICY_BYTES_MAX + 1),
      ]
    ) {
      await Deno.writeTextFile(path, bad);
      assertThrows(() => file.reload(), PolicyError, path);
      assertEquals(mayDial(file), true);
    }
    await Deno.remove(path);
    assertThrows(() => file.reload(), PolicyError, "there is no such file");
    assertEquals(mayDial(file), true);
    await Deno.writeTextFile(path, "frontends: []");
    assertEquals([file.reload(), mayDial(file)], [true, false]);
  }));

Deno.test("a file may be JSON", () =>
  inFile(async (path) => {
    const entry = { commonName: "*", allow: ["tcp:*:*"] };
    await Deno.writeTextFile(path, JSON.stringify({ frontends: [entry] }));
    assertEquals(mayDial(new PolicyFile(path)), true);
  }, "policy.json"));

Deno.test("what is no policy is refused with the file's name and the place", () => {
  const refused = (path: string, text: string) =>
    assertThrows(() => readPolicy(path, text), PolicyError).message;
  assertEquals(
    refused("p.yaml", "frontends:\n  - commonName: a\n    allow: [tcp:*:*"),
    "Cannot use the policy file p.yaml: it is not YAML: unexpected " +
      "end of the stream within a flow collection at line 4, column 1",
  );
  assertEquals(
    refused("p.yaml", "frontends:\n  - commonName: a\n    allow: [tcp:a]"),
    "Cannot use the policy file p.yaml: line 3: frontends[0].allow[0]: Cannot read " +
      'the rule "tcp:a", column 6: saw no ports, wanted ":" and ports; ' +
      "write :443, :1-1023, :80,443 or :*",
  );
  assertEquals(
    refused("p.txt", ""),
    "Cannot use the policy file p.txt: its name ends in neither .json nor .yaml",
  );
  assertThrows(
    () => new PolicyFile("/none/p.yaml"),
    PolicyError,
    "/none/p.yaml",
  );
});
