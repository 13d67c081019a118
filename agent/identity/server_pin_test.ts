import { assertMatch, assertRejects } from "@std/assert";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import { oddCertificates } from "../../tests/support/certificates/odd_certificates.ts";
import { PinError } from "./identity_error.ts";
import { pinnedAuthority } from "./server_pin.ts";

/** As far as this platform's own TLS shows such certificates to anybody. */
const SHOWN = [
  "an empty subject",
  "an empty subject and issuer",
  "a T61String",
  "broken UTF-8",
  "dates that are none",
  "control characters",
];

Deno.test("a server whose certificate is odd is told about in a sentence", async () => {
  for (const { name, cert, key } of await oddCertificates()) {
    if (!SHOWN.includes(name)) continue;
    const server = tls.createServer({ cert, key });
    server.on("tlsClientError", () => {});
    await new Promise<void>((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve())
    );
    const { port } = server.address() as AddressInfo;
    const error = await assertRejects(
      () =>
        pinnedAuthority({
          host: "127.0.0.1",
          port,
          alpn: ["h2"],
          proxyEnv: {},
          timeoutMs: 10_000,
        }, "no such pin"),
      PinError,
      undefined,
      name,
    );
    assertMatch(
      error.message,
      /^Cannot join at 127\.0\.0\.1:\d+: the server there \([^\n]+\) is not the/,
    );
    await new Promise((resolve) => server.close(resolve));
  }
});
