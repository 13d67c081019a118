import { defineCarrierCompliance } from "../../tests/support/rigs/carrier_compliance.ts";
import { packetsRig } from "../../tests/support/rigs/carrier_rig.ts";

defineCarrierCompliance("packets", packetsRig);
