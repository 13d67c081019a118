/**
 * What doctor is to tell apart, each on a stage of its own.
 *
 * @module
 */

import {
  certificateFaults,
  identityFaults,
  placeFaults,
  tokenFaults,
} from "./agent_faults.ts";
import { descriptorFaults } from "./descriptor_faults.ts";
import type { DoctorStage } from "./doctor_stage.ts";
import type { Fault } from "./fault.ts";
import { lineFaults } from "./line_faults.ts";
import { networkFaults, whyNoNetworks } from "./network_faults.ts";
import { nodeFaults } from "./node_faults.ts";
import { settingFaults, stateFaults } from "./server_faults.ts";
import { copiedFaults, POLICY, targetFaults } from "./target_faults.ts";

type Faults = (
  stage: DoctorStage,
) => readonly Fault[] | Promise<readonly Fault[]>;

/** See the module description. */
export interface Subject {
  /** What doctor does. */
  readonly name: string;
  readonly faults: Faults;
  /** Of the stage's server. */
  readonly policy?: string;
  /** Whether it cannot be tried here. */
  readonly ignore?: boolean;
}

const ignore = whyNoNetworks() !== undefined;

// deno-fmt-ignore: the columns are the point.
export const SUBJECTS: readonly Subject[] = [
  { name: "doctor says what keeps an agent from where its server should be", faults: placeFaults },
  { name: "doctor tells certificates, keys and clocks that are wrong apart", faults: certificateFaults },
  { name: "doctor says why a node is not let in", faults: identityFaults },
  { name: "doctor says what is wrong with a token without using it", faults: tokenFaults },
  { name: "doctor tells filtered, unroutable and nameless servers apart", faults: networkFaults, ignore },
  { name: "doctor tells lines that lose, swallow, reject or cut apart", faults: lineFaults, ignore },
  { name: "doctor says what is wrong with a server's settings", faults: settingFaults },
  { name: "doctor says what is wrong with a server's state and disk", faults: stateFaults },
  { name: "doctor says where a dial ends, and what mends it", faults: targetFaults, policy: POLICY },
  { name: "doctor says why a node is not online", faults: nodeFaults },
  { name: "doctor says whose descriptors are used up", faults: descriptorFaults },
  { name: "doctor says that two machines use one identity", faults: copiedFaults },
];
