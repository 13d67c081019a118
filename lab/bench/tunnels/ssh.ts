/**
 * OpenSSH's `ssh -R` with its quickest cipher, between keys made for the run:
 * no file of the user's is read, and the server is no service of the machine.
 *
 * @module
 */

import { Child } from "../../../tests/support/program/child.ts";
import { findDebianProgram } from "../../peers/debian.ts";
import { PeerMissingError } from "../../peers/peers.ts";
import { freePort } from "../../../tests/support/program/ports.ts";
import { forwarded } from "./forwarders.ts";
import type { Site, Tunnel } from "./site.ts";

const CIPHER = "aes128-gcm@openssh.com";
/**
 * Whom sshd runs as and logs in when root starts it: as root it would want an
 * account of its own, which a machine without the package does not have.
 */
const NOBODY = { name: "nobody", uid: 65_534 };

export async function startSsh(site: Site): Promise<Tunnel> {
  const { workspace, serverHost } = site;
  const [linkPort, port] = [freePort(), freePort()];
  const folder = await Deno.makeTempDir({ prefix: "tunnel-ssh-" });
  const sshd = await copySshd(folder);
  const user = await whoLogsIn();
  await Promise.all([makeKey(`${folder}/host`), makeKey(`${folder}/user`)]);
  const hostKey = await Deno.readTextFile(`${folder}/host.pub`);
  await Deno.writeTextFile(
    `${folder}/known`,
    `[${serverHost}]:${linkPort} ${hostKey}`,
  );
  await Deno.writeTextFile(
    `${folder}/sshd_config`,
    serverConfiguration(folder, serverHost, linkPort),
  );
  await Deno.copyFile(`${folder}/user.pub`, `${folder}/authorized`);
  if (user.uid !== Deno.uid()) await giveAway(folder, user.uid);
  const become = user.uid === Deno.uid() ? [] : [
    "setpriv",
    `--reuid=${user.uid}`,
    `--regid=${user.uid}`,
    "--clear-groups",
  ];
  const server = new Child({
    name: "sshd",
    command: [
      ...[...site.serverSide, ...become, "env", `LD_LIBRARY_PATH=${folder}`],
      ...[sshd, "-D", "-e", "-f", `${folder}/sshd_config`],
    ],
    logFile: workspace.path("sshd.log"),
  });
  await server.untilPrinted(/Server listening on/);
  const client = new Child({
    name: "ssh",
    command: [
      ...[...site.agentSide, "ssh", "-F", "/dev/null", "-N", "-T"],
      ...["-c", CIPHER, "-i", `${folder}/user`, "-p", `${linkPort}`],
      ...["-R", `${serverHost}:${port}:${site.target}`],
      ...CLIENT_OPTIONS.flatMap((option) => ["-o", option]),
      ...["-o", `UserKnownHostsFile=${folder}/known`],
      `${user.name}@${serverHost}`,
    ],
    logFile: workspace.path("ssh.log"),
  });
  const tunnel = forwarded(`${serverHost}:${port}`, [server, client]);
  return {
    ...tunnel,
    stop: async () => {
      await tunnel.stop();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

const CLIENT_OPTIONS: readonly string[] = [
  "IdentitiesOnly=yes",
  "IdentityAgent=none",
  "GlobalKnownHostsFile=/dev/null",
  "StrictHostKeyChecking=yes",
  "BatchMode=yes",
  "ExitOnForwardFailure=yes",
  "ConnectTimeout=10",
];

function serverConfiguration(
  folder: string,
  host: string,
  port: number,
): string {
  return [
    `ListenAddress ${host}:${port}`,
    `HostKey ${folder}/host`,
    `AuthorizedKeysFile ${folder}/authorized`,
    "PidFile none",
    // Without it sshd looks at the shadow file itself, which it may not unless
    // it is root, and takes the account for a locked one.
    "UsePAM yes",
    // The folder is below one that everybody may write to.
    "StrictModes no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PubkeyAuthentication yes",
    "AllowTcpForwarding remote",
    "GatewayPorts clientspecified",
    `Ciphers ${CIPHER}`,
    "",
  ].join("\n");
}

/** Into a folder that everybody may enter, which root's home is not. */
async function copySshd(folder: string): Promise<string> {
  const { path, libraries } = await findDebianProgram("sshd");
  const copy = `${folder}/sshd`;
  await Deno.copyFile(path, copy);
  for (const library of libraries) {
    for await (const { name, isDirectory } of Deno.readDir(library)) {
      if (isDirectory) continue;
      await Deno.copyFile(`${library}/${name}`, `${folder}/${name}`);
    }
  }
  return copy;
}

async function whoLogsIn(): Promise<{ name: string; uid: number }> {
  if (Deno.uid() === 0) return NOBODY;
  const { stdout } = await new Deno.Command("id", { args: ["-un"] }).output();
  return {
    name: new TextDecoder().decode(stdout).trim(),
    uid: Deno.uid() ?? NOBODY.uid,
  };
}

async function makeKey(path: string): Promise<void> {
  const { success, stderr } = await new Deno.Command("ssh-keygen", {
    args: ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path],
  }).output();
  if (!success) {
    const said = new TextDecoder().decode(stderr).trim();
    throw new PeerMissingError(`Cannot make an SSH key: ${said}`);
  }
}

/** What sshd reads belongs to whom it runs as; the user's key to its client. */
async function giveAway(folder: string, uid: number): Promise<void> {
  for (const name of ["host", "authorized", "sshd_config"]) {
    await Deno.chown(`${folder}/${name}`, uid, uid);
  }
  await Deno.chmod(folder, 0o711);
}
