import { defineCarrierCompliance } from "../../tests/support/carrier_compliance.ts";
import { streamsRig } from "../../tests/support/carrier_rig.ts";

defineCarrierCompliance("streams", streamsRig);
