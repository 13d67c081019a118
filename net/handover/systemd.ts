/**
 * What systemd has for services that are restarted: sockets that it keeps open
 * meanwhile (sd_listen_fds(3), FDSTORE=1), and a socket for its state
 * (sd_notify(3)).
 *
 * @module
 */

import {
  DESCRIPTORS_MAX,
  sendDescriptors,
} from "../libc/descriptor_messages.ts";
import { type LibC, openLibc } from "../libc/libc.ts";
import { encodeUnixName } from "../libc/unix_address.ts";
import type { SocketStore } from "../bind/socket_store.ts";

/** One environment variable. */
export type Environment = (name: string) => string | undefined;

/** The first descriptor that systemd passes; the others follow it. */
const FIRST = 3;

/** More than any unit has; a number that is wrong closes no descriptor of ours. */
const COUNT_MAX = 16_384;

/** The name of stored sockets; those of a socket unit have the unit's name. */
const KEPT_NAME = "tunnel";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 0x80002;

/**
 * Takes in the sockets that were passed to this process; their addresses decide
 * their use, never their order.
 *
 * @returns Their keys in the store; sockets that do not listen are closed.
 */
export function inheritSockets(
  store: SocketStore,
  environment: Environment,
): readonly string[] {
  if (environment("LISTEN_PID") !== String(Deno.pid)) return [];
  const count = Number(environment("LISTEN_FDS"));
  if (!Number.isInteger(count) || count < 1 || count > COUNT_MAX) return [];
  const keys: string[] = [];
  for (let index = 0; index < count; index++) {
    const key = store.put(FIRST + index, true);
    if (key !== undefined) keys.push(key);
  }
  return keys;
}

/** Reports our state to the service manager. */
export class ServiceManager {
  private constructor(
    private readonly library: LibC,
    private readonly address: Uint8Array<ArrayBuffer>,
    /** systemd ends a process that is silent for this long. */
    readonly watchdogMs: number | undefined,
  ) {}

  /** @returns `undefined`: there is no service manager. */
  static find(environment: Environment): ServiceManager | undefined {
    const [library, place] = [openLibc(), environment("NOTIFY_SOCKET") ?? ""];
    if (library === undefined) return undefined;
    const address = encodeUnixName(place);
    // WATCHDOG_PID is the process before, where this one has taken its place.
    const watchdogMs = Number(environment("WATCHDOG_USEC")) / 1000;
    return address &&
      new ServiceManager(
        library,
        address,
        watchdogMs > 0 ? watchdogMs : undefined,
      );
  }

  /** @param others More lines, such as `MAINPID=7`. */
  ready(...others: readonly string[]): void {
    this.#say(["READY=1", ...others]);
  }

  /** The event loop goes round. */
  alive(): void {
    this.#say(["WATCHDOG=1"]);
  }

  /** Files are read again; `ready` comes behind it. */
  reloading(): void {
    this.#say(["RELOADING=1"]);
  }

  /**
   * The process ends. Its sockets stay open with the service manager, where the
   * unit lets it (FileDescriptorStoreMax=), and are passed to the next process.
   *
   * @returns Whether the service manager takes them.
   */
  stopping(store: SocketStore): boolean {
    this.#say(["STOPPING=1"]);
    const descriptors = [...store.listening.keys()]
      .map(({ descriptor }) => descriptor);
    let isKept = false;
    while (descriptors.length > 0) {
      const some = descriptors.splice(0, DESCRIPTORS_MAX);
      const lines = ["FDSTORE=1", `FDNAME=${KEPT_NAME}`, "FDPOLL=0"];
      isKept = this.#say(lines, some) || isKept;
    }
    return isKept;
  }

  /**
   * Stored sockets are in use again, or not wanted: a socket without a listener
   * would let clients wait without end.
   */
  keepNothing(): void {
    this.#say(["FDSTOREREMOVE=1", `FDNAME=${KEPT_NAME}`]);
  }

  #say(
    lines: readonly string[],
    descriptors: readonly number[] = [],
  ): boolean {
    const library = this.library;
    const socket = library.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
    if (socket < 0) return false;
    try {
      const message = { text: lines.join("\n"), descriptors };
      return sendDescriptors(library, socket, message, this.address);
    } catch {
      // A manager that is gone is no reason to do anything else.
      return false;
    } finally {
      library.close(socket);
    }
  }
}
