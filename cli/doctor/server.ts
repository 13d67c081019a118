/**
 * `tunnel doctor server`: what a server on this machine stands on, with the
 * flags of `tunnel server`, whether it runs or not.
 *
 * @module
 */

import {
  failed,
  type Finding,
  fine,
  type Hop,
  skipped,
  warned,
} from "../../admin/doctor/walk/path_walk.ts";
import { connectToHost } from "../../net/dial/connect_host.ts";
import { RunningProcess } from "../../net/handover/running_process.ts";
import { portOwner } from "../../net/libc/port_owner.ts";
import {
  codeOf,
  messageOf,
  quietly,
} from "../../platform/errors/error_code.ts";
import { within } from "../../platform/time/deadline.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import { hostOf, portOf } from "../../proto/peer/host_port.ts";
import {
  lookAtCertificate,
  type ShownCertificate,
} from "../../admin/doctor/walk/certificate_check.ts";
import {
  lookAtDirectory,
  lookAtLog,
  openForDoctor,
} from "../../admin/doctor/server/state_check.ts";
import { SERVER_FILE } from "../../server/identity/leaf_certificates.ts";
import type { ServerOptions } from "../../server/options.ts";
import { PolicyError, PolicyFile } from "../../server/policy/authorization.ts";
import type { SERVER_FLAGS } from "../server/flags.ts";
import { serverOptions } from "../server/options.ts";
import { handoverAddress } from "../flags/program_flags.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import { defaultStateDirectory } from "../flags/state_directory.ts";
import { UsageError } from "../flags/usage_error.ts";
import type { CommandContext } from "../program/command.ts";
import { stateSource, usingConnection } from "../program/server_state.ts";
import {
  localHealth,
  lookAtRunningServer,
  runningServer,
  workersIn,
} from "../../admin/doctor/running_program.ts";
import {
  listensOf,
  lookAtPort,
} from "../../admin/doctor/server/server_ports.ts";
import { lookAtDescriptors } from "../../admin/doctor/walk/room.ts";
import { kindAt } from "../../platform/files/kind_at.ts";

type Reading = FlagReading<typeof SERVER_FLAGS>;
type Context = Pick<CommandContext, "environment" | "readFile">;

/** All that is looked at has the same options, and finds the same process. */
interface Subject {
  readonly options: ServerOptions;
  readonly values: Reading["values"];
  /** The server that runs with this state or these ports. */
  running:
    | {
      readonly pid: number;
      readonly version: string;
      /** Its addresses, from its own answer. */
      readonly addresses: ReadonlyMap<string, string>;
    }
    | undefined;
  /** Flags on the command line: the running server may have others. */
  readonly given: ReadonlySet<string>;
}

/**
 * What else is looked at depends on flags that can be used.
 *
 * @param problem Why flags from the `--config` file cannot be used.
 */
export function* serverHops(
  reading: Reading,
  context: Context,
  problem?: string,
): Generator<Hop> {
  let subject: Subject | undefined;
  yield {
    name: "configuration",
    look: () => {
      if (problem !== undefined) return configFault(problem, "file");
      const file = reading.values["config"];
      try {
        const options = serverOptions(
          reading,
          defaultStateDirectory("server", context.environment),
          context,
        );
        const { values, given } = reading;
        subject = { options, values, given, running: undefined };
        return fine(file === "" ? "flags can be used" : `${file} can be used`);
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        return configFault(error.message, file === "" ? "flags" : "file");
      }
    },
  };
  if (subject !== undefined) yield* hopsOf(subject);
}

function configFault(message: string, place: "file" | "flags"): Finding {
  return failed(
    "TUN124",
    message,
    `correct the ${place}; \`tunnel server\` would end with the same sentence`,
  );
}

/** What is wrong with one says nothing of the others: all are looked at. */
function hopsOf(subject: Subject): readonly Hop[] {
  const parts = [
    { name: "process", look: () => lookAtProcess(subject) },
    ...diskHops(subject),
    ...advertisedHops(subject),
    ...programHops(subject),
  ];
  return [
    ...parts.map((hop) => ({ ...hop, isIndependent: true })),
    // Last: what keeps it from starting matters more.
    {
      name: "running",
      look: () =>
        subject.running !== undefined ? undefined : warned(
          "TUN121",
          "no server runs with these flags",
          "start it: systemctl start tunnel-server, or tunnel server",
        ),
    },
  ];
}

/** The state, ports and certificates. */
function diskHops(subject: Subject): readonly Hop[] {
  const { options } = subject;
  const { identity } = options.agents;
  return [
    ...identity === undefined ? [] : [
      { name: "state", look: () => lookAtDirectory(identity.stateDirectory) },
      {
        name: "store",
        look: () => lookAtStore(subject),
        late: failed(
          "TUN802",
          "where the state is kept does not answer",
          options.state?.kind === "etcd"
            ? "see whether etcd runs and answers from here (etcdctl endpoint " +
              "health), and its certificates"
            : "see whether the API server, or the disk, answers from here",
        ),
      },
    ],
    ...listensOf(options).map((listen) => ({
      name: `port ${listen.name}`,
      look: () => lookAtPort(listen, subject),
    })),
    ...certificatesOf(options).map((shown) => ({
      name: "certificate",
      look: () => lookAtCertificate(shown, Date.now()),
    })),
  ];
}

/** What does not stand on disk, or only for a part. */
function programHops(subject: Subject): readonly Hop[] {
  const { options } = subject;
  const root = options.agents.identity?.stateDirectory;
  return [
    { name: "policy", look: () => lookAtPolicy(options) },
    ...logsOf(options).map(([flag, path]) => ({
      name: flag.slice(2).replace("-", " "),
      look: () => lookAtLog(flag, path),
    })),
    {
      name: "descriptors",
      look: () => lookAtDescriptors("server", subject.running?.pid),
    },
    {
      name: "health",
      look: async (signal) => {
        if (subject.running === undefined) return undefined;
        const health = subject.given.has("health-port")
          ? undefined
          : subject.running.addresses.get("health");
        const at = health === undefined ? options.health : {
          hostname: hostOf(health),
          port: portOf(health),
        };
        return await localHealth(at, signal);
      },
    },
    ...root === undefined ? [] : workersIn(root).map((worker) => ({
      name: worker === 0 ? "status" : `status of worker ${worker}`,
      look: async () =>
        subject.running &&
        await lookAtRunningServer({ root, port: options.admin.port, worker }),
    })),
  ];
}

/** Other servers and agents get this address: does a program listen there? */
function advertisedHops(subject: Subject): readonly Hop[] {
  const address = subject.options.membership?.advertiseAddress;
  if (address === undefined) return [];
  const silent = (why: string) =>
    warned(
      "TUN401",
      `--advertise-address ${address} is told to agents and other servers, ` +
        `and from here: ${why}`,
      "name the host and port under which --agent-port is reached",
    );
  return [{
    name: "advertised",
    deadlineMs: ANSWER_MS,
    look: async (signal) => {
      if (subject.running === undefined) return undefined;
      try {
        const timers = systemTimers;
        const [host, port] = [hostOf(address), portOf(address)];
        (await connectToHost(host, port, { timers, signal })).close();
        return fine(`${address} takes connections`);
      } catch (error) {
        signal.throwIfAborted();
        return silent(messageOf(error));
      }
    },
    late: silent(`no answer within ${ANSWER_MS} ms`),
  }];
}

/** The program is asked for its name, which costs it nothing. */
const ANSWER_MS = 1_500;

async function lookAtProcess(subject: Subject): Promise<Finding> {
  const { options, values } = subject;
  const { identity, address: port } = options.agents;
  const address = handoverAddress({
    command: "server",
    flag: values["handover-socket"],
    ...identity && { stateDirectory: identity.stateDirectory },
    port,
  });
  if (address === undefined) return skipped("no socket says whether it runs");
  try {
    const found = await within({
      timers: systemTimers,
      timeoutMs: ANSWER_MS,
      late: () => new Error(`no answer within ${ANSWER_MS} ms`),
    }, RunningProcess.find(address));
    found?.close();
    const root = identity?.stateDirectory;
    const asked = root === undefined
      ? undefined
      : await runningServer({ root, port: options.admin.port });
    const { pid, version } = found ?? asked ?? {};
    if (!pid || !version) return skipped("no server runs with these flags");
    const addresses = new Map(Object.entries(asked?.addresses ?? {}));
    subject.running = { pid, version, addresses };
    return fine(`process ${pid} runs, version ${version}`);
  } catch (error) {
    const code = codeOf(error);
    if (["ENOENT", "ECONNREFUSED", "ENOTDIR"].includes(code)) {
      return skipped("no server runs with these flags");
    }
    if (code === "EACCES" || code === "EPERM") {
      return skipped(`${address} is another user's: run as its owner`);
    }
    // Its ports are its own, though it does not say so.
    const pid = portOwner(port.port)?.pid;
    if (pid !== undefined) {
      subject.running = { pid, version: "", addresses: new Map() };
    }
    return failed(
      "TUN913",
      `a server is there, and cannot be spoken with: ${messageOf(error)}`,
      `if it hangs (ps -o stat,wchan -p ${pid ?? "PID"}), restart it`,
    );
  }
}

async function lookAtStore({ options }: Subject): Promise<Finding | undefined> {
  const { stateDirectory } = options.agents.identity!;
  const isElsewhere = options.state !== undefined &&
    options.state.kind !== "directory";
  // That it is not there, or not ours, is said already.
  const names = quietly(() => [...Deno.readDirSync(stateDirectory)]);
  if (!isElsewhere && names === undefined) return undefined;
  const location = options.state ??
    { kind: "directory" as const, root: stateDirectory };
  return await usingConnection(location, async (connection) => {
    const { finding, engine } = await openForDoctor(
      stateSource(connection, options.stateKey, {
        printError: () => {},
      }),
      Date.now(),
    );
    await engine?.close();
    return finding;
  });
}

function certificatesOf(options: ServerOptions): readonly ShownCertificate[] {
  const { agents, frontend, membership } = options;
  const { identity, keyPair, caFile } = agents;
  const advertised = membership?.advertiseAddress;
  const names = advertised === undefined ? [] : [hostOf(advertised)];
  const shown: ShownCertificate[] = [];
  if (keyPair !== undefined) {
    shown.push({
      flag: "--cluster-cert",
      files: { cert: keyPair.certFile, key: keyPair.keyFile, ca: caFile },
      names,
      isRenewed: false,
    });
  }
  if (
    identity !== undefined &&
    kindAt(`${identity.stateDirectory}/${SERVER_FILE}`) === "file"
  ) {
    const file = `${identity.stateDirectory}/${SERVER_FILE}`;
    shown.push({
      flag: "the server's own certificate",
      files: { cert: file, key: file },
      names: [TUNNEL_SERVER_NAME],
      isRenewed: true,
    });
  }
  const { listen } = frontend;
  if (listen.kind !== "unix") {
    const { certFile, keyFile } = listen.keyPair;
    shown.push({
      flag: "--server-cert",
      files: { cert: certFile, key: keyFile, ca: listen.caFile },
      names: [],
      isRenewed: false,
    });
  }
  return shown;
}

/** Files that it writes for others, and the flags that name them; no streams. */
function logsOf(
  { authorization, access }: ServerOptions,
): (readonly [flag: string, path: string])[] {
  const logs = [
    ["--audit-log", authorization?.audit?.path],
    ["--access-log", access?.file.path],
  ] as const;
  return logs.flatMap(([flag, path]) =>
    path?.includes("/") === true ? [[flag, path] as const] : []
  );
}

function lookAtPolicy({ authorization }: ServerOptions): Finding | undefined {
  const file = authorization?.policyFile;
  if (file === undefined) return undefined;
  try {
    new PolicyFile(file);
    return fine(`${file} can be read`);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return failed(
      "TUN124",
      error.message,
      "correct the file; a running server keeps the policy that it has",
    );
  }
}
