/**
 * What keeps a server from serving: its ports, its state, its disk, its
 * certificates, its configuration, its limits, its store.
 *
 * @module
 */

import {
  limitedTo,
  onFullDisk,
  onReadOnlyDisk,
  whileStill,
  withoutPrivilege,
} from "../mistakes/surroundings.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import { type Fault, fault } from "./fault.ts";

/** Flags of a server that has nothing in common with another one. */
const PORTS = ["--agent-port=0", "--health-port=0", "--admin-port=0"];

/** What is wrong beside the state. */
// deno-fmt-ignore: the columns are the point.
export function settingFaults(stage: DoctorStage): readonly Fault[] {
  const own = `--state-dir=${stage.identity.stateDirectory}`;
  const fresh = `--state-dir=${stage.path("server")}`;
  const taken = stage.service(() => new Promise(() => {}));
  const { ca, server, agent } = stage.workspace.certificates;
  const config = stage.file("config.yaml", "agent-prt: 1\n");
  const policy = stage.file("policy.yaml", "frontends:\n- commonNam: a\n");
  const rival = `--agent-port=${stage.closedPort}`;
  const files = [`--cluster-cert=${server.cert}`, `--cluster-ca-cert=${ca}`];
  const unported = ["server", ...files, `--uds-name=${stage.path("front.sock")}`, "--server-port=0"];
  const keyed = `--cluster-key=${server.key}`;
  const foreign = [...unported, ...PORTS, keyed];
  return [
    fault("another process has the port", "fatedier/frp#1334",
      "TUN904", "port agents", /another --agent-port/,
      [...unported, keyed, `--agent-port=${taken}`, ...PORTS.slice(1)]),
    fault("a first start, and another process has the port", "daily use: a fresh machine where something listens",
      "TUN904", "port agents", /another --agent-port/, ["server", fresh, `--agent-port=${taken}`, ...PORTS.slice(1)]),
    fault("the server listens on loopback only", "daily use: no agent ever comes",
      "TUN401", "status", /--agent-bind-address/,
      ["server", own, `--agent-port=${stage.identity.agentPort}`, ...PORTS.slice(1)], { isOdd: true }),
    fault("a server runs with this state on another port", "daily use: second server, same state",
      "TUN904", "port agents", /stop that server|--state-dir/, ["server", own, rival, ...PORTS.slice(1)]),
    fault("an address that this machine does not have", "daily use: bind address that is not here",
      "TUN904", "port agents", /--agent-bind-address/,
      [...unported, keyed, rival, "--agent-bind-address=192.0.2.1", ...PORTS.slice(1)]),
    fault("the server's key is of another certificate", "daily use: key mismatch",
      "TUN203", "certificate", /--cluster-cert/, [...unported, ...PORTS, `--cluster-key=${agent.key}`]),
    fault("the certificate is not for the advertised address", "cloudflare/cloudflared#1048",
      "TUN207", "certificate", /issue it for that name/,
      [...foreign, "--advertise-address=tunnel.example:8091"]),
    fault("the configuration file has a slip", "daily use: unknown config key",
      "TUN124", "configuration", /correct the file/, ["server", `--config=${config}`]),
    fault("the folder of the audit log is not there", "daily use: a new machine, the old command line",
      "TUN905", "audit log", /install -d/,
      [...foreign, `--audit-log=${stage.path("logs")}/audit.json`]),
    fault("the policy file has a slip", "daily use: policy at start",
      "TUN124", "policy", /correct the file/,
      [...foreign, `--policy-file=${policy}`]),
    fault("etcd, where the state is kept, is down", "daily use: etcd down",
      "TUN802", "store", /etcdctl endpoint health/,
      ["server", fresh, `--state=etcd://127.0.0.1:${stage.closedPort}`, "--state-key-file=none", ...PORTS]),
  ];
}

/** What is wrong with the directory, and the disk below it. */
// deno-fmt-ignore: the columns are the point.
export function stateFaults(stage: DoctorStage): readonly Fault[] {
  const { stateDirectory } = stage.identity;
  const own = [`--state-dir=${stateDirectory}`, ...PORTS];
  const copy = (change?: (path: string) => void) => stage.copyOfServer("copy", change);
  const damaged = copy((path) => Deno.removeSync(`${path}/ca/roles.json`));
  const open = copy((path) => Deno.chmodSync(path, 0o777));
  const forbidden = copy();
  const faults: Fault[] = [
    fault("no server has run here", "daily use: token without a server ever",
      "TUN121", "state", /tunnel server|--state-dir/, ["server", `--state-dir=${stage.path("none")}`, ...PORTS]),
    fault("nothing is wrong, but that no server runs", "daily use: it was not started",
      "TUN121", "running", /systemctl start/, ["server", `--state-dir=${copy()}`, ...PORTS]),
    fault("the CA was lost", "daily use: CA key lost",
      "TUN801", "store", /backup/, ["server", `--state-dir=${damaged}`, ...PORTS]),
    fault("others may change the state", "daily use: others' permission",
      "TUN801", "store", /mode|owner/, ["server", `--state-dir=${open}`, ...PORTS]),
    fault("the state is another user's", "daily use: non-root on root's state",
      "TUN801", "state", /owner/, ["server", `--state-dir=${forbidden}`, ...PORTS], withoutPrivilege(forbidden)),
    fault("the limit of open files is low", "fatedier/frp#752",
      "TUN513", "descriptors", /LimitNOFILE/, ["server", `--state-dir=${copy()}`, ...PORTS],
      { prefix: limitedTo(200) }),
    fault("the server hangs", "daily use: silent peer (SIGSTOP)",
      "TUN913", "process", /ps .* -p \d+\), restart it/,
      ["server", ...stage.ownFlags],
      whileStill(() => stage.identity.child)),
  ];
  if (Deno.uid() !== 0) return faults;
  return [
    ...faults,
    fault("the disk is full", "daily use: disk full",
      "TUN905", "state", /make room/, ["server", ...own],
      onFullDisk(stateDirectory, 64)),
    fault("the disk is read-only", "daily use: read-only file system",
      "TUN905", "state", /dmesg|rw/, ["server", ...own], onReadOnlyDisk(stateDirectory)),
  ];
}
