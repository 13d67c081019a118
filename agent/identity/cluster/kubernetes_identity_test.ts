import { assertEquals, assertRejects } from "@std/assert";
import {
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../../neighbours/kubernetes/csr.ts";
import { PrivateFileError } from "../../../platform/files/private_files.ts";
import { CertificateAuthority } from "../../../platform/pki/authority.ts";
import { readCertificates } from "../../../platform/pki/certificate.ts";
import { generateKeyPair } from "../../../platform/pki/key_pair.ts";
import { Credentials } from "../../../net/tls/trust/credentials.ts";
import { inMemoryFolder } from "../../../tests/support/memory/memory_folder.ts";
import { RecordedLog } from "../../../tests/support/watch/recorded_log.ts";
import { CertificateFiles } from "./certificate_files.ts";
import { KubernetesIdentity } from "./kubernetes_identity.ts";
import { NeighbourConfigError } from "../../../neighbours/tls_files.ts";

const HOUR_MS = 3600_000;

const SPEC = {
  signerName: API_CLIENT_SIGNER,
  usages: CLIENT_USAGES,
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: ["edge1"],
  ipAddresses: [],
  expirationSeconds: 3600,
};

const authority = await CertificateAuthority.create({
  commonName: () => "kubernetes",
  notAfter: new Date(Date.now() + 1000 * HOUR_MS),
});

/** A node that has a certificate, until so long from now. */
async function node(folder: string, lifeMs = HOUR_MS) {
  const files = new CertificateFiles(`${folder}/pki`, "agent", Date.now);
  await files.open();
  const keys = await generateKeyPair();
  const pem = await authority.issue({
    publicKey: keys.publicKey,
    ...SPEC,
    names: [{ type: "dns", value: "edge1" }],
    usage: "client",
    notAfter: new Date(Date.now() + lifeMs),
  });
  await files.keep(readCertificates(pem), keys);
  return files;
}

async function writeKubeconfig(path: string, ca?: string): Promise<void> {
  const cluster = {
    // Nothing listens there.
    server: "https://127.0.0.1:1",
    ...ca === undefined ? {} : { "certificate-authority-data": btoa(ca) },
  };
  const text = JSON.stringify({
    "current-context": "main",
    clusters: [{ name: "main", cluster }],
    contexts: [{ name: "main", context: { cluster: "main" } }],
  });
  await Deno.writeTextFile(path, text);
}

function open(folder: string): Promise<KubernetesIdentity> {
  return KubernetesIdentity.open({
    api: { kubeconfig: `${folder}/kubeconfig` },
    certificate: {
      directory: `${folder}/pki`,
      component: "agent",
      spec: SPEC,
    },
  }, new RecordedLog());
}

Deno.test("servers are verified with the API server's authority, as it was last known", () =>
  inMemoryFolder(async (folder) => {
    const files = await node(folder);
    const kubeconfig = `${folder}/kubeconfig`;
    await writeKubeconfig(kubeconfig, authority.certificate);
    for (const isThere of [true, false]) {
      if (!isThere) await Deno.remove(kubeconfig);
      const identity = await open(folder);
      try {
        await identity.first();
        await identity.ready();
        const { ca } = Credentials.load(identity.files).current;
        assertEquals(ca, authority.certificate);
      } finally {
        identity.stop();
      }
    }
    await Deno.remove(files.authorities);
    await hasNoAuthority(folder, "there is no such file");
    // A cluster that names none has to be told one.
    await writeKubeconfig(kubeconfig);
    await hasNoAuthority(folder, "give --ca-cert");
  }));

async function hasNoAuthority(folder: string, why: string): Promise<void> {
  const identity = await open(folder);
  await assertRejects(() => identity.first(), NeighbourConfigError, why);
  identity.stop();
}

Deno.test("a directory that cannot be made is named", () =>
  inMemoryFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/pki`, "a file");
    await assertRejects(
      () => open(folder),
      PrivateFileError,
      `Cannot use ${folder}/pki: `,
    );
  }));

Deno.test("with a certificate that has expired no link is tried", () =>
  inMemoryFolder(async (folder) => {
    await node(folder, -1000);
    await writeKubeconfig(`${folder}/kubeconfig`, authority.certificate);
    const identity = await open(folder);
    try {
      await assertRejects(
        () => identity.ready(),
        Error,
        "Cannot prove who this node is: ",
      );
    } finally {
      identity.stop();
    }
  }));
