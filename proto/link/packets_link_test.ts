import { defineCarrierCompliance } from "../../tests/support/carrier_compliance.ts";
import { packetsRig } from "../../tests/support/carrier_rig.ts";

defineCarrierCompliance("packets", packetsRig);
