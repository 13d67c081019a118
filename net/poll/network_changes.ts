/**
 * Hears from the kernel that the machine's network has changed: links that come
 * and go, addresses, routes (rtnetlink(7)).
 *
 * The kind of change does not matter here: listeners look again. It needs Linux
 * with the C library; elsewhere no change is reported.
 *
 * @module
 */

import { type LibC, openLibc } from "../libc/libc.ts";
import { type Pollable, type Poller, Ready, sharedPoller } from "./poller.ts";

const AF_NETLINK = 16;
/** SOCK_RAW, SOCK_CLOEXEC, SOCK_NONBLOCK */
const RAW_CLOEXEC_NONBLOCK = 0x80803;
const NETLINK_ROUTE = 0;
const MSG_DONTWAIT = 0x40;

/** Links, addresses and routes of both families. */
const GROUPS = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/** `struct sockaddr_nl`. */
const ADDRESS_BYTES = 12;

/** Messages read in one go; a machine with many containers has bursts of them. */
const READS_PER_TURN = 64;

/** See the module description. */
export class NetworkChanges implements Pollable {
  readonly #buffer = new Uint8Array(4_096);
  #isOpen = true;

  private constructor(
    private readonly library: LibC,
    private readonly poller: Poller,
    private readonly descriptor: number,
    private readonly onChange: () => void,
  ) {}

  /**
   * @param onChange Something has changed, and more may change at once.
   * @returns `undefined` where nothing can be heard.
   */
  static listen(onChange: () => void): NetworkChanges | undefined {
    const [library, poller] = [openLibc(), sharedPoller()];
    if (library === undefined || poller === undefined) return undefined;
    const descriptor = library.socket(
      AF_NETLINK,
      RAW_CLOEXEC_NONBLOCK,
      NETLINK_ROUTE,
    );
    if (descriptor < 0) return undefined;
    const address = new Uint8Array(ADDRESS_BYTES);
    const words = new DataView(address.buffer);
    words.setUint16(0, AF_NETLINK, true);
    words.setUint32(8, GROUPS, true);
    const changes = new NetworkChanges(library, poller, descriptor, onChange);
    if (
      library.bind(descriptor, address, address.length) === 0 &&
      poller.add(descriptor, Ready.READ | Ready.EDGE, changes)
    ) return changes;
    library.close(descriptor);
    return undefined;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    void this.poller.close(this.descriptor);
  }

  onReady(): void {
    let hasChanged = false;
    for (let reads = 0; this.#isOpen; reads++) {
      if (reads === READS_PER_TURN) {
        this.poller.goOn(this);
        break;
      }
      // An overflow (ENOBUFS) is an error, once: changes were lost, and so it is one.
      const count = this.library.recv(
        this.descriptor,
        this.#buffer,
        BigInt(this.#buffer.length),
        MSG_DONTWAIT,
      );
      if (count < 0 && reads > 0) break;
      hasChanged = true;
      if (count <= 0) break;
    }
    if (hasChanged && this.#isOpen) this.onChange();
  }

  onFault(): void {
    this.close();
  }
}
