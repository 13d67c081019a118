import { assertEquals } from "@std/assert";
import type { TLSSocket } from "node:tls";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { oddCertificates } from "../../../tests/support/certificates/odd_certificates.ts";
import { refuseClient } from "./client_certificate.ts";

Deno.test("an odd certificate is refused with a sentence, by either rule", async () => {
  const { ca } = await certificates();
  for (const { name, der } of oddCertificates()) {
    for (const rule of ["required", "optional"] as const) {
      const socket = {
        authorized: false,
        getPeerCertificate: () => ({ raw: der }),
      } as unknown as TLSSocket;
      const refusal = refuseClient(socket, rule, ca, "10.0.0.1:5");
      assertEquals(refusal?.failure, "untrusted-certificate", name);
    }
  }
});

Deno.test("a certificate that the platform cannot even show is refused", () => {
  const socket = {
    authorized: false,
    getPeerCertificate: () => {
      throw null;
    },
  } as unknown as TLSSocket;
  for (const rule of ["required", "optional"] as const) {
    const refusal = refuseClient(socket, rule, "", "10.0.0.1:5");
    assertEquals(
      refusal?.message,
      "Cannot accept TLS from 10.0.0.1:5: its certificate was not signed by a " +
        "CA that is trusted here (a certificate that cannot be read)",
    );
  }
});
