/**
 * What a connection may take of limits that it shares with others: those of its
 * source, and those of the whole process.
 *
 * The limits of one connection (`abuse_limits.ts`) do not bound a peer that
 * opens many. The owner of the connections decides which of them share what;
 * the engine requests before it takes, and gives back what it took.
 *
 * @module
 */

export interface SharedLimits {
  /** The peer opens a stream. @returns false: refuse it, it is not counted. */
  takeStream(): boolean;
  giveStream(): void;
  /** Bytes of a head that is not complete. @returns false: not counted. */
  takeHeaderBytes(bytes: number): boolean;
  giveHeaderBytes(bytes: number): void;
  /** A stream was begun and thrown away. @returns false: once too often. */
  takeReset(): boolean;
  /** The connection was ended because its peer broke a rule. */
  fault?(): void;
}

/** For connections that share nothing. */
export const UNSHARED: SharedLimits = {
  takeStream: () => true,
  giveStream() {},
  takeHeaderBytes: () => true,
  giveHeaderBytes() {},
  takeReset: () => true,
};
