/**
 * A stream over a stream that is the same in everything: what a layer that
 * changes one thing of it builds on.
 *
 * @module
 */

import type { PeerIdentity } from "../../proto/peer/peer_identity.ts";
import type { PeerCredentials, Stream, StreamUser, Turn } from "./stream.ts";

/** Its user is notified by the stream below. */
export abstract class StreamLayer implements Stream {
  protected readonly below: Stream;

  constructor(below: Stream) {
    this.below = below;
  }

  get remoteAddress(): string {
    return this.below.remoteAddress;
  }

  get localAddress(): string {
    return this.below.localAddress;
  }

  get alpn(): string {
    return this.below.alpn;
  }

  get serverName(): string {
    return this.below.serverName;
  }

  get identity(): PeerIdentity {
    return this.below.identity;
  }

  get descriptor(): number | undefined {
    return this.below.descriptor;
  }

  get turn(): Turn {
    return this.below.turn;
  }

  get isOpen(): boolean {
    return this.below.isOpen;
  }

  get closesInOrder(): boolean {
    return this.below.closesInOrder;
  }

  get onClosed(): (() => void) | undefined {
    return this.below.onClosed;
  }

  set onClosed(closed: (() => void) | undefined) {
    this.below.onClosed = closed;
  }

  peerCredentials(): PeerCredentials | undefined {
    return this.below.peerCredentials();
  }

  notify(user: StreamUser): void {
    this.below.notify(user);
  }

  goOn(): void {
    this.below.goOn();
  }

  read(into: Uint8Array<ArrayBuffer>): number {
    return this.below.read(into);
  }

  write(bytes: Uint8Array<ArrayBuffer>): number {
    return this.below.write(bytes);
  }

  flush(): boolean {
    return this.below.flush();
  }

  closeWrite(): void {
    this.below.closeWrite();
  }

  close(): void {
    this.below.close();
  }

  reset(): void {
    this.below.reset();
  }
}
