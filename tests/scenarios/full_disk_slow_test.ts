/**
 * What has its state starts and serves on a full disk, and says which file it
 * could not write: a server, an agent, a proxy.
 *
 * @module
 */

import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { messageOf } from "../../platform/errors/error_code.ts";
import { replaceFile } from "../../platform/files/atomic_file.ts";
import { fillDisk, tinyDisk, unmount } from "../support/memory/tiny_disk.ts";
import { askEcho } from "../support/peers/steady_requests.ts";
import { freePort } from "../support/program/ports.ts";
import { mustRun } from "../support/program/run.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { NO_PORTS, Processes } from "../support/rigs/processes.ts";
import { StateServers } from "../support/rigs/state_servers.ts";
import { eventually } from "../support/watch/patience.ts";

const folder = await tinyDisk(512);
const disk = await tinyDisk(512);

Deno.test({
  name: "a server starts on a full disk, and its nodes come back",
  ignore: folder === undefined,
  async fn() {
    const state = `${folder}/state`;
    const first = await IdentityRig.open({}, state);
    const node = await first.joined("n1");
    await first.tunnel[Symbol.asyncDispose]();
    const ballast = await fillDisk(folder!);
    const path = `${state}/new`;
    const error = await assertRejects(() => replaceFile(path, "text"));
    assertEquals(
      messageOf(error),
      `cannot use ${path}: the disk is full; make room and try again`,
    );
    {
      // At another port than before, which it cannot write down.
      await using rig = await IdentityRig.open({}, state);
      await rig.link(node);
      const kept = rig.tunnel.log.matching(/^Cannot keep /);
      assertEquals(kept.length, 1);
      assertMatch(
        kept[0]!.message,
        /serving\.json: the disk is full; make room/,
      );
    }
    await Deno.remove(ballast);
    await unmount(folder!);
  },
});

/** A command whose log is a file, which may be on a full disk. */
function loggingTo(file: string, command: readonly string[]): string[] {
  return ["sh", "-c", 'f="$1"; shift; exec "$@" 2>>"$f"', "sh", file]
    .concat(command);
}

Deno.test({
  name: "an agent and a proxy start, serve and log on a full disk",
  ignore: disk === undefined,
  async fn() {
    await using tunnel = new Processes(await Workspace.make());
    await using at = new StateServers(tunnel.workspace, []);
    const echo = tunnel.echo();
    const state = tunnel.workspace.path("state");
    const server = await at.start(state, "--v=2");
    const [file, port, health] = [
      `${disk}/services.json`,
      freePort(),
      freePort(),
    ];
    await Deno.writeTextFile(file, servicesText("a", port, echo));
    const token = await at.token(`--state-dir=${state}`, "--node=n1");
    await mustRun(
      ...["join", token, `--server=${server.address}`, "--node=n1"],
      `--state-dir=${disk}/agent`,
    );
    const ballast = await fillDisk(disk!);

    const agent = tunnel.launch(
      "agent",
      loggingTo(
        `${disk}/agent.log`,
        ourCommand(
          ...["agent", `--state-dir=${disk}/agent`, "--v=2", ...NO_PORTS],
          ...[`--server=${server.address}`, `--access-log=${disk}/access.log`],
        ),
      ),
    );
    await server.untilLinked("agent=n1");
    const proxy = tunnel.launch(
      "proxy",
      loggingTo(
        `${disk}/proxy.log`,
        ourCommand(
          ...["proxy", `--config=${file}`, `--admin-port=${health}`],
          ...[`--address-file=${disk}/addresses`, "--v=2"],
          ...[`--catalog-copies=${disk}/copies`, `--admin-socket=${disk}/s`],
          `--handover-socket=${disk}/h`,
        ),
      ),
    );
    await proxy.untilReady(`http://127.0.0.1:${health}/readyz`);
    await askEcho(port)();

    // With room again, what they had to say is said.
    await Deno.remove(ballast);
    for (
      const [name, line] of [
        ["agent", /linked to server/],
        ["proxy", /default\/a is served/],
      ] as const
    ) {
      await eventually(
        `the log of the ${name}`,
        async () => line.test(await Deno.readTextFile(`${disk}/${name}.log`)),
      );
      const log = await Deno.readTextFile(`${disk}/${name}.log`);
      assertEquals(/os error|internal error/.test(log), false, log);
    }
    for (const child of [agent, proxy]) {
      child.signal("SIGTERM");
      assertEquals((await child.ended).code, 0);
    }
    await at[Symbol.asyncDispose]();
    await unmount(disk!);
  },
});

function servicesText(name: string, port: number, to: number): string {
  const ports = [{ port: 80, listen: `127.0.0.1:${port}` }];
  const endpoints = [{ address: "127.0.0.1", port: to }];
  return JSON.stringify({ services: [{ name, ports, endpoints }] });
}
