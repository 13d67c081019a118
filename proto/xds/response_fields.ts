/**
 * Numbers of the fields of responses that are read and written by hand
 * (`envoy/service/discovery/v3/discovery.proto`).
 *
 * @module
 */

/** Of `DiscoveryResponse` and of `DeltaDiscoveryResponse`. */
export const VERSION_FIELD = 1;
export const RESOURCES_FIELD = 2;
export const TYPE_URL_FIELD = 4;
export const NONCE_FIELD = 5;

/** Of `DeltaDiscoveryResponse` alone. */
export const REMOVED_FIELD = 6;

/** Of `DiscoveryResponse`: why a resource is not in it. */
export const ERRORS_FIELD = 7;

/** Of `ResourceError`; of its name, and of its `google.rpc.Status`. */
export const ERROR_NAME_FIELD = 1;
export const ERROR_DETAIL_FIELD = 2;
export const RESOURCE_NAME_IN_ERROR_FIELD = 1;
export const STATUS_MESSAGE_FIELD = 2;

/** The server's id: other numbers in each of the two. */
export const CONTROL_PLANE_FIELDS = { sotw: 6, delta: 7 } as const;

/** Of `ControlPlane`. */
export const IDENTIFIER_FIELD = 1;

/** Of `Resource`, of which a `DeltaDiscoveryResponse` is full. */
export const RESOURCE_VERSION_FIELD = 1;
export const RESOURCE_ANY_FIELD = 2;
export const RESOURCE_NAME_FIELD = 3;
