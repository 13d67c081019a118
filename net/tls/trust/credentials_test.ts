import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { RecordedErrors } from "../../../tests/support/watch/recorded_errors.ts";
import { NameCa } from "../../../tests/support/certificates/name_certificates.ts";
import {
  commonName,
  relative,
  utf8,
} from "../../../tests/support/certificates/written_certificate.ts";
import { slip } from "../../../tests/support/watch/recorded_faults.ts";
import { Credentials, CredentialsError } from "./credentials.ts";

Deno.test("good files are read, whatever stands around their blocks", async () => {
  await withFiles(async (write) => {
    const all = await certificates();
    const credentials = Credentials.load({
      cert: write("cert", `subject=CN=x\n${all.server.cert}${all.ca}`),
      key: write("key", all.server.key),
      ca: write("ca", `${all.otherCa}\n# comment\n${all.ca}`),
    });
    assertEquals(credentials.warnings, []);
    assertStringIncludes(credentials.current.cert, all.server.cert);
    assertEquals(Credentials.load({}).current, { cert: "", key: "", ca: "" });
  });
});

Deno.test("what is wrong with a file is said in one line", async () => {
  await withFiles(async (write, folder) => {
    const all = await certificates();
    const good = {
      cert: write("cert", all.server.cert),
      key: write("key", all.server.key),
    };
    const damaged = all.ca.replace(/\n.{10}/, "\nAAAAAAAAAA");
    const cases: [files: Record<string, string>, text: string][] = [
      [{ ...good, cert: `${folder}/none` }, "there is no such file"],
      [{ ...good, cert: folder }, "is a directory"],
      [{ cert: good.cert }, "its key was not given"],
      [{ key: good.key }, "its certificate was not given"],
      [{ ...good, cert: write("a", "") }, "it holds nothing"],
      [{ ...good, cert: write("b", "hello") }, "it holds no PEM block"],
      [{ ...good, cert: good.key }, 'it holds "BEGIN PRIVATE KEY"'],
      [{ ...good, key: good.cert }, 'it holds "BEGIN CERTIFICATE"'],
      [
        { ...good, key: write("c", all.client.key) },
        "does not belong to the first certificate",
      ],
      [
        {
          ...good,
          key: write(
            "d",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n" +
              "-----END ENCRYPTED PRIVATE KEY-----\n",
          ),
        },
        "it is encrypted",
      ],
      [
        {
          ...good,
          key: write(
            "e",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
          ),
        },
        "is damaged",
      ],
      [{ ca: write("f", all.ca + damaged) }, "block 2 of 2 is damaged"],
      [{ ca: write("g", all.ca.slice(0, -30)) }, "it has no END line"],
    ];
    for (const [files, text] of cases) {
      const error = assertThrows(
        () => Credentials.load(files),
        CredentialsError,
        text,
      );
      assertEquals(error.message.split("\n").length, 1, error.message);
      assertStringIncludes(error.message, folder);
    }
  });
});

Deno.test("an unreadable file is told from a missing one", async () => {
  if (Deno.uid() === 0) return; // root reads everything
  await withFiles((write) => {
    const ca = write("ca", "");
    Deno.chmodSync(ca, 0);
    assertThrows(() => Credentials.load({ ca }), CredentialsError, "denied");
    return Promise.resolve();
  });
});

Deno.test("an expired certificate is used with a warning", async () => {
  await withFiles(async (write) => {
    const all = await certificates();
    const cert = write("cert", all.expiredServer.cert);
    const key = write("key", all.expiredServer.key);
    const { warnings } = Credentials.load({ cert, key });
    assertEquals(warnings.length, 1);
    assertStringIncludes(warnings[0]!, `${cert} (CN=tunnel-server) expired on`);
  });
});

Deno.test("a certificate is called by its common name, wherever that stands", async () => {
  await withFiles((write) => {
    const organization = relative(["2.5.4.10", utf8("ops")]);
    const subject = [commonName(utf8("edge-7")), organization];
    const { cert } = new NameCa().issue({ subject });
    const { terms } = Credentials.load({ ca: write("ca", cert) });
    assertEquals(terms.map(({ subject }) => subject), ["edge-7"]);
    return Promise.resolve();
  });
});

Deno.test("a CA of X.509 version 1 is refused", async () => {
  await withFiles((write) => {
    assertThrows(
      () => Credentials.load({ ca: write("ca", VERSION_1_CA) }),
      CredentialsError,
      "version 1",
    );
    return Promise.resolve();
  });
});

Deno.test("a reload takes effect, and a failed one keeps the old", async () => {
  await withFiles(async (write) => {
    const all = await certificates();
    const ca = write("ca", all.ca);
    const credentials = Credentials.load({ ca });
    const seen: string[] = [];
    const stop = credentials.onChange((material) => seen.push(material.ca));
    assertEquals(credentials.reload(), false);
    write("ca", all.otherCa);
    assertEquals(credentials.reload(), true);
    assertEquals(seen, [all.otherCa]);
    write("ca", "broken");
    assertThrows(() => credentials.reload(), CredentialsError);
    assertEquals(credentials.current.ca, all.otherCa);
    stop();
    write("ca", all.ca);
    credentials.reload();
    assertEquals(seen.length, 1);
  });
});

Deno.test("a slip of one follower of a reload keeps it from nobody else", async () => {
  using recorded = new RecordedErrors();
  await withFiles(async (write) => {
    const all = await certificates();
    const credentials = Credentials.load({ ca: write("ca", all.ca) });
    const seen: string[] = [];
    credentials.onChange(slip);
    credentials.onChange((material) => seen.push(material.ca));
    write("ca", all.otherCa);
    assertEquals(credentials.reload(), true);
    assertEquals([seen, recorded.messages], [[all.otherCa], ["a slip"]]);
  });
});

async function withFiles(
  use: (
    write: (name: string, content: string) => string,
    folder: string,
  ) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const write = (name: string, content: string) => {
    Deno.writeTextFileSync(`${folder}/${name}`, content);
    return `${folder}/${name}`;
  };
  await use(write, folder);
  await Deno.remove(folder, { recursive: true });
}

/** Self-signed, for a hundred years, its key thrown away. */
const VERSION_1_CA = `-----BEGIN CERTIFICATE-----
MIIBFzCBvQIUKWKrbPooj2wjCAs6WksizGvBA5UwCgYIKoZIzj0EAwIwDTELMAkG
A1UEAwwCdjEwIBcNMjYxMTIxMTMzMTI5WhgPMjEyNjEwMjgxMzMxMjlaMA0xCzAJ
BgNVBAMMAnYxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEmoDh9CRQdK5MmmMt
vnaz5WOERYCR7WVOpmjo//fGwbBEXbh/5eStuboZeuZTCXAh6GiodGRxhzBCW+B7
fRyTBTAKBggqhkjOPQQDAgNJADBGAiEA3qMzgKdmfKhLOiMjJkEgyVyNrRCCDBVu
qNicOS5JAAsCIQDSIYpgdQadFKY3T4E56RJeG0oqiRITzWTA9DjdPTDXog==
-----END CERTIFICATE-----
`;

Deno.test("an expired certificate does not replace a good one, nor one of the future", async () => {
  await withFiles(async (write) => {
    const all = await certificates();
    const put = ({ cert, key }: { cert: string; key: string }) => ({
      cert: write("cert", cert),
      key: write("key", key),
    });
    const credentials = Credentials.load(put(all.client));
    let failures = 0;
    credentials.onFailure(() => failures++);
    put(all.expiredClient);
    assertThrows(() => credentials.reload(), CredentialsError, "it expired on");
    put(all.futureClient);
    const error = assertThrows(
      () => credentials.reload(),
      CredentialsError,
      "it is valid only from",
    ) as CredentialsError;
    assertEquals(error.goodFromMs! > Date.now(), true);
    assertEquals(credentials.current.cert, all.client.cert);
    assertEquals(failures, 2);
    put(all.otherClient);
    assertEquals(credentials.reload(), true);
  });
});

Deno.test("one expired certificate replaces another, and whatever renews itself", async () => {
  await withFiles(async (write) => {
    const all = await certificates();
    const put = ({ cert, key }: { cert: string; key: string }) => ({
      cert: write("cert", cert),
      key: write("key", key),
    });
    const expired = Credentials.load(put(all.expiredServer));
    put(all.expiredClient);
    assertEquals(expired.reload(), true);
    const renewing = Credentials.load(put(all.client), "by itself");
    put(all.expiredClient);
    assertEquals(renewing.reload(), true);
  });
});
