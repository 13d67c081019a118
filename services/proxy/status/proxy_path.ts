/**
 * Where a proxy tells about its services, on whichever port.
 *
 * @module
 */

export const PROXY_STATUS_PATH = "/debug/proxy";
