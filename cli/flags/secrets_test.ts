import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { HIDDEN, withoutSecrets } from "./secrets.ts";
import { patience } from "../../tests/support/watch/patience.ts";

/** `S3` stands wherever a secret does. */
const TEXTS: readonly string[] = [
  "TUNNEL_ETCD_PASSWORD=S3",
  "--etcd-password S3 --x",
  "ExecStart=tunnel agent --kube-token 'S3 S3'",
  'etcd.password: "S3 S3"',
  "password: 'S3 S3'",
  JSON.stringify({ password: 'S3 "S3" S3' }),
  JSON.stringify(JSON.stringify({ token: "S3" })),
  "postgres://user:p@S3/S3@db/x",
  "https://u:S3@S3@h:1/",
  "https://S3@h",
  "Cookie: tunnel_admin_8095=S3; other=S3",
  "AWS_SECRET_ACCESS_KEY=S3",
  "client-key-data: LS0tLS1CRUdJTiBFS3",
  "OTEL_EXPORTER_OTLP_HEADERS=x-team=S3",
  "-----BEGIN EC PRIVATE KEY-----\nS3\n-----END EC PRIVATE KEY-----\n",
  "-----BEGIN PRIVATE KEY-----\nS3",
  "https://blob.example/x?sv=1&sig=S3%2Bb&se=2",
  "https://s3.example/x?X-Amz-Credential=S3&X-Amz-Signature=S3",
  "http://127.0.0.1:1/x?token=S3&api_key=S3",
  "key AKIAS3S3S3S3S3S3S3S3 was refused",
  "git push https://h/ with ghp_S3S3S3S3S3 and github_pat_S3S3S3S3",
  "passphrase S3",
  "Passphrase: S3",
  "sshpass -p S3 ssh a",
  "S3abc\nS3+/=\n-----END PRIVATE KEY-----\nINFO",
  '"-----BEGIN PRIVATE KEY-----\\nS3\\n-----END PRIVATE KEY-----"',
  "Authorization: Bearer MIIS3secret",
  '{"authorization":"Basic MIIS3secret"}',
  "password=S3&x=1",
  "--token=S3",
  "got Bearer MIIS3secret from the peer",
  "eyJhbGciOi.MIIS3secret.x",
];

Deno.test("secrets are found wherever people put them", () => {
  for (const text of TEXTS) {
    const shown = withoutSecrets(text);
    assert(!shown.includes("S3"), `${text} => ${shown}`);
    assertStringIncludes(shown, HIDDEN, text);
    assertEquals(withoutSecrets(shown).includes("S3"), false);
  }
  assertEquals(withoutSecrets("0123456789abcdef".repeat(4)), HIDDEN);
});

Deno.test("what is no secret stays", () => {
  for (
    const text of [
      "INFO agent edge-7 linked from 10.9.8.7",
      "agent node1 linked to https://tunnel.example:8091",
      "http://127.0.0.1:8095/v1/nodes?name=a@b",
      "--token-file /etc/tunnel/token --server a:1",
      "the token is not known here",
      "--peer a -path /x -p",
      "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ]
  ) assertEquals(withoutSecrets(text), text);
  assertEquals(
    withoutSecrets("http://a:1,http://u:p@b:2/x"),
    "http://a:1,http://(hidden)@b:2/x",
  );
});

Deno.test("JSON stays JSON", () => {
  const value = {
    ...{ token: "S3", password: 'a "b" \\', tokens: ["x"], secret: { a: 1 } },
    cookie: "a=b; c=d",
    list: [{ "x-api-key": "S3" }],
  };
  for (const indent of [0, 1]) {
    const shown = JSON.parse(
      withoutSecrets(JSON.stringify(value, null, indent)),
    );
    assertEquals(shown, {
      ...{ token: "(hidden)", password: "(hidden)", tokens: ["x"] },
      ...{ secret: { a: 1 }, cookie: "(hidden)" },
      list: [{ "x-api-key": "(hidden)" }],
    });
  }
});

Deno.test("a megabyte that is made to be slow takes no longer", () => {
  for (
    const piece of [
      "a://",
      "a:",
      '="',
      "password=",
      "aaaa ",
      "\\",
      "--token ",
      "?sig=",
      " -p ",
      "passphrase ",
    ]
  ) {
    const text = piece.repeat(1_000_000 / piece.length);
    const beganMs = performance.now();
    withoutSecrets(`${text}-----END PRIVATE KEY-----`);
    assert(performance.now() - beganMs < patience(5_000), piece);
  }
});
