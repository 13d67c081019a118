/**
 * Runs the load generator once and refuses results that are not whole.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { findPeer, type PeerName } from "../../tests/support/program/peers.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";

/** What one run gave; numbers by the names of the generator. */
export type Sample = Readonly<Record<string, number>>;

/** A run that moved less than was asked for, or had an error: no result. */
export class SpoiledRunError extends Error {
  override name = "SpoiledRunError";
}

const LOAD_TIMEOUT_MS = 240_000;

export interface Generation {
  readonly workspace: Workspace;
  /** `loadgen`, or `grpcgen` for the route of kube-apiserver. */
  readonly program?: PeerName;
  /** Words before the command, such as `ip netns exec nsA`. */
  readonly prefix?: readonly string[];
  readonly flags: readonly string[];
  /** None of them may end meanwhile. */
  readonly pieces?: readonly Child[];
}

/**
 * One run of the generator.
 *
 * @throws {SpoiledRunError} When it failed, a piece of the tunnel died, or
 * {@linkcode checkSample} finds the result wanting.
 */
export async function generate(generation: Generation): Promise<Sample> {
  const { workspace, program = "loadgen", prefix = [], flags } = generation;
  const child = new Child({
    name: program,
    command: [...prefix, await findPeer(program), ...flags],
    logFile: workspace.path(`${program}.log`),
  });
  const timer = setTimeout(() => child.signal("SIGKILL"), LOAD_TIMEOUT_MS);
  const { success } = await child.ended;
  clearTimeout(timer);
  const printed = await child.logTail();
  if (!success) throw new SpoiledRunError(`${program} failed: ${printed}`);
  for (const piece of generation.pieces ?? []) {
    if (piece.hasEnded) throw new SpoiledRunError(`the ${piece.name} died`);
  }
  const line = printed.trimEnd().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new SpoiledRunError(`no JSON: ${printed}`);
  return checkSample(JSON.parse(line));
}

/**
 * Passes a result of the generator on if it is whole.
 *
 * @throws {SpoiledRunError} On any error, on a missing byte, and when a
 * process of the tunnel ended meanwhile.
 */
export function checkSample(printed: Record<string, unknown>): Sample {
  const number = (key: string) => Number(printed[key] ?? NaN);
  if (number("errs") !== 0) {
    const first = printed["first_err"] === undefined
      ? ""
      : `, first: ${printed["first_err"]}`;
    throw new SpoiledRunError(`${printed["errs"]} errors${first}`);
  }
  if (
    printed["wanted"] !== undefined && number("bytes") !== number("wanted")
  ) {
    throw new SpoiledRunError(
      `${printed["bytes"]} of ${printed["wanted"]} bytes were moved`,
    );
  }
  if (printed["mode"] === "idle" && number("ok") !== number("n")) {
    throw new SpoiledRunError(`${printed["ok"]} of ${printed["n"]} are open`);
  }
  if (printed["gone"] !== undefined && number("gone") !== 0) {
    throw new SpoiledRunError(
      `${printed["gone"]} processes of the tunnel ended meanwhile`,
    );
  }
  const numbers = Object.entries(printed)
    .filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return Object.fromEntries(numbers);
}
