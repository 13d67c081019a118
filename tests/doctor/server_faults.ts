/**
 * What keeps a server from serving: its ports, its state, its disk, its
 * certificates, its configuration, its limits, its store.
 *
 * @module
 */

import { withoutPrivilege } from "../mistakes/without_privilege.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";

/** Flags of a server that has nothing in common with another one. */
const PORTS = ["--agent-port=0", "--health-port=0", "--admin-port=0"];

/** What is wrong beside the state. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export function settingFaults(stage: DoctorStage): readonly Fault[] {
  const own = `--state-dir=${stage.identity.stateDirectory}`;
  const fresh = `--state-dir=${stage.path("server")}`;
  const taken = stage.service(() => new Promise(() => {}));
  const { ca, server, agent } = stage.workspace.certificates;
  const file = (name: string, text: string) => {
    const path = stage.path(name);
    Deno.writeTextFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const config = file("config.yaml", "agent-prt: 1\n");
  const policy = file("policy.yaml", "frontends:\n- commonNam: a\n");
  const rival = `--agent-port=${stage.closedPort}`;
  const foreign = [
    `--cluster-cert=${server.cert}`,
    `--cluster-ca-cert=${ca}`,
    `--uds-name=${stage.path("front.sock")}`,
    "--server-port=0",
    ...PORTS,
  ];
  return [
    {
      what: "another process has the port",
      source: "fatedier/frp#1334",
      args: [
        "server",
        ...foreign.slice(0, -3),
        `--cluster-key=${server.key}`,
        `--agent-port=${taken}`,
        ...PORTS.slice(1),
      ],
      code: "TUN904",
      hop: "port agents",
      remedy: /another --agent-port/,
    },
    {
      what: "a first start, and another process has the port",
      source: "daily use: a fresh machine where something listens",
      args: ["server", fresh, `--agent-port=${taken}`, ...PORTS.slice(1)],
      code: "TUN904",
      hop: "port agents",
      remedy: /another --agent-port/,
    },
    {
      what: "the server listens on loopback only",
      source: "daily use: no agent ever comes",
      args: [
        "server",
        own,
        `--agent-port=${stage.identity.agentPort}`,
        ...PORTS.slice(1),
      ],
      code: "TUN401",
      hop: "status",
      remedy: /--agent-bind-address/,
      isOdd: true,
    },
    {
      what: "a server runs with this state on another port",
      source: "daily use: second server, same state",
      args: ["server", own, rival, ...PORTS.slice(1)],
      code: "TUN904",
      hop: "port agents",
      remedy: /stop that server|--state-dir/,
    },
    {
      what: "an address that this machine does not have",
      source: "daily use: bind address that is not here",
      args: [
        "server",
        ...foreign.slice(0, -3),
        `--cluster-key=${server.key}`,
        rival,
        "--agent-bind-address=192.0.2.1",
        ...PORTS.slice(1),
      ],
      code: "TUN904",
      hop: "port agents",
      remedy: /--agent-bind-address/,
    },
    {
      what: "the server's key is of another certificate",
      source: "daily use: key mismatch",
      args: ["server", ...foreign, `--cluster-key=${agent.key}`],
      code: "TUN203",
      hop: "certificate",
      remedy: /--cluster-cert/,
    },
    {
      what: "the certificate is not for the advertised address",
      source: "cloudflare/cloudflared#1048",
      args: [
        "server",
        ...foreign,
        `--cluster-key=${server.key}`,
        "--advertise-address=tunnel.example:8091",
      ],
      code: "TUN207",
      hop: "certificate",
      remedy: /issue it for that name/,
    },
    {
      what: "the configuration file has a slip",
      source: "daily use: unknown config key",
      args: ["server", `--config=${config}`],
      code: "TUN124",
      hop: "configuration",
      remedy: /correct the file/,
    },
    {
      what: "the folder of the audit log is not there",
      source: "daily use: a new machine, the old command line",
      args: [
        "server",
        ...foreign,
        `--cluster-key=${server.key}`,
        `--audit-log=${stage.path("logs")}/audit.json`,
      ],
      code: "TUN905",
      hop: "audit log",
      remedy: /install -d/,
    },
    {
      what: "the policy file has a slip",
      source: "daily use: policy at start",
      args: [
        "server",
        ...foreign,
        `--cluster-key=${server.key}`,
        `--policy-file=${policy}`,
      ],
      code: "TUN124",
      hop: "policy",
      remedy: /correct the file/,
    },
    {
      what: "etcd, where the state is kept, is down",
      source: "daily use: etcd down",
      args: [
        "server",
        fresh,
        `--state=etcd://127.0.0.1:${stage.closedPort}`,
        "--state-key-file=none",
        ...PORTS,
      ],
      code: "TUN802",
      hop: "store",
      remedy: /etcdctl endpoint health/,
    },
  ];
}

/** What is wrong with the directory, and the disk below it. */
// deno-lint-ignore tunnel/function-length -- it is a table.
export function stateFaults(stage: DoctorStage): readonly Fault[] {
  const { stateDirectory } = stage.identity;
  const own = [`--state-dir=${stateDirectory}`, ...PORTS];
  const copy = () => {
    const path = stage.path("copy");
    copyTree(stateDirectory, path);
    return path;
  };
  const damaged = copy();
  Deno.removeSync(`${damaged}/ca/roles.json`);
  const open = copy();
  Deno.chmodSync(open, 0o777);
  const forbidden = copy();
  const faults: Fault[] = [
    {
      what: "no server has run here",
      source: "daily use: token without a server ever",
      args: ["server", `--state-dir=${stage.path("none")}`, ...PORTS],
      code: "TUN121",
      hop: "state",
      remedy: /tunnel server|--state-dir/,
    },
    {
      what: "nothing is wrong, but that no server runs",
      source: "daily use: it was not started",
      args: ["server", `--state-dir=${copy()}`, ...PORTS],
      code: "TUN121",
      hop: "running",
      remedy: /systemctl start/,
    },
    {
      what: "the CA was lost",
      source: "daily use: CA key lost",
      args: ["server", `--state-dir=${damaged}`, ...PORTS],
      code: "TUN801",
      hop: "store",
      remedy: /backup/,
    },
    {
      what: "others may change the state",
      source: "daily use: others' permission",
      args: ["server", `--state-dir=${open}`, ...PORTS],
      code: "TUN801",
      hop: "store",
      remedy: /mode|owner/,
    },
    {
      what: "the state is another user's",
      source: "daily use: non-root on root's state",
      args: ["server", `--state-dir=${forbidden}`, ...PORTS],
      code: "TUN801",
      hop: "state",
      remedy: /owner/,
      ...withoutPrivilege(forbidden),
    },
    {
      what: "the limit of open files is low",
      source: "fatedier/frp#752",
      args: ["server", `--state-dir=${copy()}`, ...PORTS],
      code: "TUN513",
      hop: "descriptors",
      remedy: /LimitNOFILE/,
      prefix: ["sh", "-c", 'ulimit -n 200 && exec "$@"', "doctor"],
    },
    {
      what: "the server stands still",
      source: "daily use: silent peer (SIGSTOP)",
      args: [
        "server",
        `--state-dir=${stateDirectory}`,
        `--agent-port=${stage.identity.agentPort}`,
        `--health-port=${stage.identity.healthPort}`,
        "--admin-port=0",
      ],
      code: "TUN913",
      hop: "process",
      remedy: /ps .* -p \d+\), restart it/,
      around: async (run) => {
        stage.identity.child.signal("SIGSTOP");
        await run().finally(() => stage.identity.child.signal("SIGCONT"));
      },
    },
  ];
  if (Deno.uid() !== 0) return faults;
  return [
    ...faults,
    {
      what: "the disk is full",
      source: "daily use: disk full",
      args: ["server", ...own],
      code: "TUN905",
      hop: "state",
      remedy: /make room/,
      ...mounted(
        `-t tmpfs -o size=64k none ${stateDirectory} && ` +
          `head -c 65536 /dev/zero >${stateDirectory}/full`,
      ),
    },
    {
      what: "the disk is read-only",
      source: "daily use: read-only file system",
      args: ["server", ...own],
      code: "TUN905",
      hop: "state",
      remedy: /dmesg|rw/,
      ...mounted(`--bind -o ro ${stateDirectory} ${stateDirectory}`),
    },
  ];
}

/** Runs the command with another file system there. */
function mounted(mount: string): Pick<Fault, "prefix"> {
  const script = `mount ${mount}; exec "$@"`;
  return { prefix: ["unshare", "-m", "sh", "-c", script, "doctor"] };
}

function copyTree(from: string, to: string): void {
  Deno.mkdirSync(to, { mode: 0o700 });
  for (const { name, isFile, isDirectory } of Deno.readDirSync(from)) {
    if (isDirectory) copyTree(`${from}/${name}`, `${to}/${name}`);
    if (isFile) Deno.copyFileSync(`${from}/${name}`, `${to}/${name}`);
  }
}
