/**
 * How long the clients of one TCP port wait for their endpoint, and how long
 * they stay with it.
 *
 * @module
 */

import { Histogram } from "../../../platform/metrics/metrics.ts";

/** Seconds: from a neighbour's round trip to a dial that is given up. */
const CONNECT_BOUNDS =
  // deno-fmt-ignore: one line is what is read best.
  [.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10];

/** Seconds: from one request to a day. */
const LENGTH_BOUNDS = [.01, .1, 1, 10, 60, 300, 1_800, 7_200, 43_200, 86_400];

export class PortTimes {
  /** From a client's coming to its connection with an endpoint, all tries in it. */
  readonly connect = new Histogram(CONNECT_BOUNDS);
  /** From then on to the end. */
  readonly length = new Histogram(LENGTH_BOUNDS);
}
