import { assertMatch } from "@std/assert";
import { SslError } from "./ssl_error.ts";
import { oddCertificates } from "../../../tests/support/certificates/odd_certificates.ts";
import { clientHandshakeError, serverHandshakeError } from "./tls_errors.ts";

Deno.test("where dates are checked both clocks are shown, of either end", () => {
  const odd = oddCertificates();
  const { der } = odd.find(({ name }) => name === "an empty subject")!;
  for (const code of ["CERT_NOT_YET_VALID", "CERT_HAS_EXPIRED"]) {
    const error = new SslError(code, "certificate verify failed", der);
    assertMatch(
      clientHandshakeError(error, "a:1").message,
      /: it is valid from \S+Z until \S+Z, and our clock says \S+Z; compare the clocks$/,
    );
    assertMatch(
      serverHandshakeError(error, "b:2", "CN=b").message,
      / its certificate .*: our clock says \S+Z; compare the clocks \(CN=b\)$/,
    );
  }
  const alert = new SslError("ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", "");
  assertMatch(
    clientHandshakeError(alert, "a:1").message,
    /the server says that our certificate has expired: our clock says \S+Z;/,
  );
});
