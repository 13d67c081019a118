/**
 * Metrics of tunnels over long, narrow and lossy lines, of datagrams and of
 * cold starts: each brings its own place for the tunnel.
 *
 * @module
 */

import type { Metric } from "../metric.ts";
import { AGGREGATE_4_LINKS, AGGREGATE_DEFAULT } from "./aggregate.ts";
import { COLD_START } from "./cold_start.ts";
import { UDP_ECHO, UDP_ONE_WAY } from "./datagrams.ts";
import {
  FIRST_ANSWER_CONNECT,
  FIRST_ANSWER_EARLY_200,
  FIRST_ANSWER_FORWARD,
} from "./first_answer.ts";
import { ONE_CONNECTION_DOWN, ONE_CONNECTION_UP } from "./one_connection.ts";
import { SMALL_BESIDE_BULK } from "./small_beside_bulk.ts";

export const LINE_METRICS: Readonly<Record<string, Metric>> = {
  "line-small": SMALL_BESIDE_BULK,
  "line-bulk16": AGGREGATE_4_LINKS,
  "line-bulk16-default": AGGREGATE_DEFAULT,
  "line-down1": ONE_CONNECTION_DOWN,
  "line-up1": ONE_CONNECTION_UP,
  "line-first-forward": FIRST_ANSWER_FORWARD,
  "line-first-connect": FIRST_ANSWER_CONNECT,
  "line-first-early": FIRST_ANSWER_EARLY_200,
  "cold": COLD_START,
  "udp-echo": UDP_ECHO,
  "udp-oneway": UDP_ONE_WAY,
};
