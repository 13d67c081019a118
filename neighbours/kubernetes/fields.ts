/**
 * Looks into a decoded YAML or JSON value without trusting its form, and says
 * where in the file what is wrong.
 *
 * @module
 */

import { KubernetesConfigError } from "./errors.ts";

/** A map, and where it stands. */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #where: string;

  /** Use {@linkcode fieldsOf}. */
  constructor(values: Readonly<Record<string, unknown>>, where: string) {
    this.#values = values;
    this.#where = where;
  }

  has(name: string): boolean {
    const value = this.#value(name);
    return value !== undefined && value !== null && value !== "";
  }

  /** A text; empty when absent. */
  text(name: string): string {
    const value = this.#value(name) ?? "";
    if (typeof value !== "string") throw this.#wrong(name, "a text");
    return value;
  }

  /** `true` or absent. */
  flag(name: string): boolean {
    const value = this.#value(name) ?? false;
    if (typeof value !== "boolean") throw this.#wrong(name, "true or false");
    return value;
  }

  texts(name: string): readonly string[] {
    return this.#list(name).map((item) => {
      if (typeof item === "string") return item;
      throw this.#wrong(name, "a list of texts");
    });
  }

  /** A text in base64, decoded; empty when absent. */
  base64(name: string): string {
    try {
      const bytes = Uint8Array.fromBase64(this.text(name));
      return new TextDecoder().decode(bytes);
    } catch (error) {
      if (error instanceof KubernetesConfigError) throw error;
      throw this.#wrong(name, "base64");
    }
  }

  child(name: string): Fields {
    return fieldsOf(this.#value(name) ?? {}, `${this.#where}: ${name}`);
  }

  children(name: string): readonly Fields[] {
    return this.#list(name).map((item, index) =>
      fieldsOf(item, `${this.#where}: ${name}[${index}]`)
    );
  }

  /** The item of a list of named ones. */
  named(list: string, name: string): Fields {
    const found = this.#list(list).find((item) =>
      typeof item === "object" && item !== null &&
      (item as { name?: unknown }).name === name
    );
    if (found === undefined) {
      throw this.problem(`${list} has none of the name "${name}"`);
    }
    return fieldsOf(found, `${this.#where}: ${list} "${name}"`);
  }

  /** What `extensions` say under `name`, in kubeconfig's way; else `null`. */
  extension(name: string): unknown {
    for (const item of this.#list("extensions")) {
      const { name: itsName, extension } = item as Record<string, unknown>;
      if (itsName === name) return extension ?? null;
    }
    return null;
  }

  problem(sentence: string): KubernetesConfigError {
    return new KubernetesConfigError(`Cannot use ${this.#where}: ${sentence}`);
  }

  /** Nothing of `Object.prototype`, whatever is asked for. */
  #value(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }

  #list(name: string): readonly unknown[] {
    const value = this.#value(name) ?? [];
    if (!Array.isArray(value)) throw this.#wrong(name, "a list");
    return value;
  }

  #wrong(name: string, wanted: string): KubernetesConfigError {
    return this.problem(`${name} is not ${wanted}`);
  }
}

/**
 * @param where Such as `kubeconfig admin.conf`, for messages.
 * @throws {KubernetesConfigError} When it is no map.
 */
export function fieldsOf(value: unknown, where: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new KubernetesConfigError(`Cannot use ${where}: wanted a map`);
  }
  return new Fields(value as Record<string, unknown>, where);
}
