/**
 * Where the admin port shows what discovery does.
 *
 * @module
 */

/** How far each client is. */
export const SYNCZ_PATH = "/debug/syncz";

/** What clients of a name have, and should have: `?node=NAME`. */
export const CONFIGZ_PATH = "/debug/configz";

/** Endpoints as the catalog has them. */
export const ENDPOINTZ_PATH = "/debug/endpointz";

/** What clients of a name are told, in full: `?node=NAME`. */
export const CONFIG_DUMP_PATH = "/debug/config_dump";
