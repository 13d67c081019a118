import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { openLibssl } from "./library.ts";
import type { SecureContextOptions } from "./secure_context.ts";
import { contextOf } from "./secure_contexts.ts";

const library = openLibssl();

async function server(): Promise<SecureContextOptions> {
  const { server, ca } = await certificates();
  return {
    role: { kind: "server", clientCertificate: "required" },
    material: { ...server, ca },
    alpn: ["h2"],
    minVersion: "TLSv1.2",
  };
}

Deno.test({
  name: "one context serves all who ask for the same",
  ignore: library === undefined,
  fn: async () => {
    const options = await server();
    const context = contextOf(library!, options);
    assert(!(context instanceof Error));
    assert(context === contextOf(library!, { ...options, alpn: ["h2"] }));
    const others: Partial<SecureContextOptions>[] = [
      { alpn: ["http/1.1"] },
      { minVersion: "TLSv1.3" },
      { role: { kind: "server", clientCertificate: "none" } },
      { role: { kind: "client" } },
      { material: { ...options.material } },
    ];
    for (const other of others) {
      const another = contextOf(library!, { ...options, ...other });
      assert(!(another instanceof Error));
      assert(another !== context);
    }
  },
});

Deno.test({
  name: "credentials that cannot be used are tried once",
  ignore: library === undefined,
  fn: async () => {
    const options = await server();
    const { otherClient } = await certificates();
    const material = { ...options.material, key: otherClient.key };
    const error = contextOf(library!, { ...options, material });
    assert(error instanceof Error);
    assertNotEquals(error.message, "");
    assertEquals(contextOf(library!, { ...options, material }), error);
  },
});
