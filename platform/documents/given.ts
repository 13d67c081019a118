/**
 * Objects that have no field without a value: what no flag and no document says
 * is absent in them.
 *
 * @module
 */

/** Fields that may be `undefined` are absent then. */
export type Given<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & {
    [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<
      T[K],
      undefined
    >;
  };

/** The fields that are there. */
export function given<const T extends object>(fields: T): Given<T> {
  const there = Object.entries(fields).filter(([, value]) =>
    value !== undefined
  );
  return Object.fromEntries(there) as Given<T>;
}

/** The same; `undefined` when none is. */
export function anyGiven<T extends object>(fields: T): Given<T> | undefined {
  const there = given(fields);
  return Object.keys(there).length === 0 ? undefined : there;
}
