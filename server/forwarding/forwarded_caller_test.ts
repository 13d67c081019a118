import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import {
  certifiedCaller,
  socketCaller,
} from "../../tests/support/memory/fake_caller.ts";
import { Metadata } from "../../proto/grpc/metadata.ts";
import { Forwarded } from "../../proto/link/forwarding_messages.ts";
import { DialError } from "../../proto/peer/dial_error.ts";
import { callerFacts, callerName } from "../policy/caller.ts";
import {
  decodeForwarded,
  encodeForwarded,
  FORWARDED_BYTES_MAX,
  FORWARDED_FIELD,
} from "./forwarded_caller.ts";

const CALLERS = {
  certified: certifiedCaller("ops", {
    organizations: ["system:masters", "a,b"],
    names: ["DNS:ops.example", "URI:spiffe://x/y,z"],
  }),
  node: { ...certifiedCaller("node:edge-9"), node: "edge-9" },
  socket: { ...socketCaller(), peerCredentials: () => ({ pid: 0, uid: 1000 }) },
  unknown: socketCaller("/run/other.sock"),
};

function carried(caller: (typeof CALLERS)[keyof typeof CALLERS]) {
  const value = encodeForwarded({ caller, hasPolicy: true }, "s1");
  return decodeForwarded(new Metadata({ [FORWARDED_FIELD]: value }));
}

Deno.test("policies and audit logs see of a forwarded caller what they saw before", () => {
  for (const caller of Object.values(CALLERS)) {
    const { caller: arrived, hasPolicy } = carried(caller);
    assertEquals(hasPolicy, true);
    assertEquals(arrived.forwardedBy, "s1");
    const { names, kind, commonName, certificate } = caller.identity;
    assertEquals(arrived.identity.names, names);
    assertEquals([arrived.identity.kind, arrived.identity.commonName], [
      kind,
      commonName,
    ]);
    assertEquals(
      arrived.identity.certificate?.organizations,
      certificate?.organizations,
    );
    assertEquals(arrived.remoteAddress, caller.remoteAddress);
    assertEquals(callerFacts(arrived), {
      ...callerFacts(caller),
      forwardedBy: "s1",
    });
    assertEquals(callerName(arrived), `${callerName(caller)} by server s1`);
  }
});

Deno.test("a caller with names without end is not forwarded without some of them", () => {
  const names = Array.from(
    { length: 1_000 },
    (_, index) => `DNS:${index}.${"x".repeat(30)}.example`,
  );
  const caller = certifiedCaller("ops", { names });
  const error = assertThrows(
    () => encodeForwarded({ caller, hasPolicy: false }, "s1"),
    DialError,
  );
  assertEquals(error.reason, "refused");
  assertMatch(
    error.message,
    new RegExp(`, ${FORWARDED_BYTES_MAX} are allowed`),
  );
});

Deno.test("what no server sends is refused with what was seen", () => {
  const good = { serverId: "s1", caller: { remoteAddress: "10.0.0.1:1" } };
  const cases: readonly (readonly [string, Metadata, RegExp])[] = [
    ["nothing", new Metadata(), /saw 0 fields tunnel-forwarded-bin/],
    [
      "bytes that are no message",
      message(Uint8Array.of(0xff)),
      /saw .+, wanted/,
    ],
    ["nobody", message({ serverId: "s1" }), /saw no caller/],
    ["no server", message({ ...good, serverId: "" }), /id of 0 characters/],
    [
      "a long name",
      message({ ...good, serverId: "s".repeat(254) }),
      /server id of 254 characters/,
    ],
    [
      "a name for a terminal",
      message({ ...good, serverId: "s1\u001b[2J\n" }),
      /a server id with invisible characters/,
    ],
    [
      "a server as a node",
      message({ ...good, caller: { node: "tunnel-server" } }),
      /a node's name that is none/,
    ],
  ];
  for (const [name, metadata, words] of cases) {
    const error = assertThrows(
      () => decodeForwarded(metadata),
      DialError,
      "",
      name,
    );
    assertEquals(error.reason, "refused", name);
    assertMatch(error.message, words, name);
  }
  const twice = message(good);
  twice.add(FORWARDED_FIELD, Forwarded.encode(good));
  assertThrows(() => decodeForwarded(twice), DialError, "saw 2 fields");
});

function message(
  content: Uint8Array | Parameters<typeof Forwarded.encode>[0],
): Metadata {
  const value = content instanceof Uint8Array
    ? content
    : Forwarded.encode(content);
  return new Metadata({ [FORWARDED_FIELD]: value });
}
