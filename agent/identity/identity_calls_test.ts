import tls from "node:tls";
import { assertMatch, assertRejects } from "@std/assert";
import type { AddressInfo } from "node:net";
import { TLS_CHOICES } from "../../net/tls/openssl/tls_choice.ts";
import { oddCertificates } from "../../tests/support/certificates/odd_certificates.ts";
import { PinError } from "./enrolment_error.ts";
import { pinnedAuthority } from "./identity_calls.ts";

/** As far as each engine shows such certificates to anybody. */
const SHOWN = {
  platform: [
    "an empty subject",
    "an empty subject and issuer",
    "a T61String",
    "broken UTF-8",
    "dates that are none",
    "control characters",
  ],
  openssl: [
    "an empty subject",
    "an empty subject and issuer",
    "a T61String",
    "dates that are none",
    "control characters",
  ],
} as const;

for (const choice of TLS_CHOICES) {
  Deno.test(`a server whose certificate is odd is told about in a sentence, ${choice}`, async () => {
    for (const { name, cert, key } of await oddCertificates()) {
      if (!(SHOWN[choice] as readonly string[]).includes(name)) continue;
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
            tls: choice,
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
}
