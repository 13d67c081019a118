/**
 * Where servers publish that they are there, and see that others are: a shared
 * directory, etcd, or a Kubernetes API server.
 *
 * What is published has parts, which are texts: one about the server, and some
 * about its agents (`member_record.ts`, `agent_shards.ts`). An engine does not
 * read them. All of a server's parts go when it ends, or when nothing is heard of
 * it any more. Names and texts of others are hostile.
 *
 * @module
 */

/** The part about the server itself; without it nobody looks at the others. */
export const MEMBER_PART = "member";

/** The parts that there are. */
export const PART_NAME = /^(?:member|agents-\d\d)$/;

/** A server that says nothing for so long is gone, unless options say otherwise. */
export const PEER_TIMEOUT_MS = 10_000;

/** Servers that are followed; what is published beyond that is not looked at. */
export const MEMBERS_MAX = 256;

/** One part of one server; without text it is gone. */
export interface PartChange {
  readonly instanceId: string;
  readonly part: string;
  readonly text: string | undefined;
}

/** What an engine reports. */
export interface EngineEvents {
  /** Of one moment; what this server publishes itself is included. */
  changed(changes: readonly PartChange[]): void;
  /** Everything was seen, and is followed from here on. */
  following(): void;
  /**
   * It cannot be seen, or not be written, now; what was seen before may be old.
   *
   * @param message A sentence without its full stop.
   */
  problem(message: string): void;
}

/** One way to publish and to see. */
export interface MemberEngine {
  start(events: EngineEvents): void;
  /** From now on; without text not any more. Kept until `stop`. */
  publish(part: string, text: string | undefined): void;
  /** Takes everything back at once. Settles soon, come what may. */
  stop(): Promise<void>;
}
