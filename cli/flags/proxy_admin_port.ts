/**
 * Where `tunnel services` looks for a proxy, and a proxy for a port.
 *
 * @module
 */

export const PROXY_ADMIN_PORT = 8096;
