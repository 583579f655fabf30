import type { TSchema } from 'typebox';
import { compiledOnce } from '../core/compiled-once.ts';
import type { ErrorDetail } from '../core/errors.ts';
import { keysOf } from '../core/json/parse-in-slices.ts';
import { parsePointer } from '../core/json/patch-operation.ts';

/** Yields each fault as it is found, and `undefined` at times, so that the caller can pause or stop. */
export type Faults = Generator<ErrorDetail | undefined, void>;

/** Keywords whose faults are described by `x-must`. */
const saidInWords: ReadonlySet<string> = new Set(['pattern', 'type', 'not', 'enum']);

const unknownMember = 'is not a property that this object can have';

/** Characters. Longer names of unknown members are cut in the answer. */
const maxShownName = 200;

const valuesBetweenPauses = 1_000;

/** TypeBox compares all pairs of items for uniqueness. */
const maxUniqueItems = 100;

/** Finds the faults of one value. */
interface FaultFinder {
  /** Whether the value certainly has none. */
  accepts(value: unknown): boolean;
  /** `path` has the keys that lead to the value. */
  faults(value: unknown, path: readonly string[], pauses: Pauses): Faults;
}

interface ContainerSchema {
  properties?: Record<string, TSchema>;
  required?: readonly string[];
  patternProperties?: Record<string, TSchema>;
  additionalProperties?: unknown;
  items?: TSchema;
  maxItems?: number;
  uniqueItems?: boolean;
  /** What a value must be, in words. */
  'x-must'?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Form[];
}

type Form = TSchema & Pick<ContainerSchema, 'properties' | 'required' | 'const' | 'enum' | 'items'>;

/**
 * Compiles a schema to a search for faults that can stop at any of them; TypeBox's own search always visits the whole
 * value.
 *
 * @example
 * const faultsOf = compileFaultFinder(Type.Array(Type.Integer()));
 * faultsOf([1, 'a', 'b']).next().value; // { field: '1', message: 'must be integer' }
 */
export function compileFaultFinder(schema: TSchema): (value: unknown) => Faults {
  const finder = compileFinder(schema);
  return (value) => finder.faults(value, [], new Pauses());
}

/** Tells when it is time for a pause. */
class Pauses {
  #values = 0;

  isDue(): boolean {
    this.#values += 1;
    return this.#values % valuesBetweenPauses === 0;
  }
}

function compileFinder(schema: TSchema & ContainerSchema): FaultFinder {
  const objects = schema.anyOf?.filter(({ properties }) => properties !== undefined) ?? [];
  if (objects.length > 0) return formsFinder(schema, objects);
  const choice = choiceOf(schema);
  const [array, ...others] = schema.anyOf?.filter(({ items }) => items !== undefined) ?? [];
  if (choice !== undefined && array !== undefined && others.length === 0) return arrayOrFinder(schema, array, choice);
  if (choice !== undefined) return choiceFinder(schema, choice);
  if (schema.items !== undefined) return arrayFinder(schema, schema.items);
  if (schema.properties !== undefined || schema.patternProperties !== undefined) return objectFinder(schema);
  return plainFinder(schema);
}

/** What a value must be, for a schema of values or forms; undefined for any other. */
function choiceOf(schema: TSchema & ContainerSchema): string | undefined {
  const words = schema['x-must'];
  if (words !== undefined && (schema.anyOf ?? schema.enum ?? schema.const) !== undefined) return `must ${words}`;
  if (schema.const !== undefined) return `must be ${textOf(schema.const)}`;
  if (schema.enum === undefined && schema.anyOf === undefined) return undefined;
  const values = valuesOf(schema);
  return values.length === 0
    ? 'must have one of the forms that are allowed'
    : `must be one of ${values.map(textOf).join(', ')}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** One fault that lists the values, instead of TypeBox's faults of each form. */
function choiceFinder(schema: TSchema, message: string): FaultFinder {
  const { accepts } = plainFinder(schema);
  return {
    accepts,
    *faults(value, path) {
      if (!accepts(value)) yield { field: path.join('.'), message };
    },
  };
}

/** An array has the faults of the only form that is for arrays. */
function arrayOrFinder(schema: TSchema, array: Form, message: string): FaultFinder {
  const choice = choiceFinder(schema, message);
  const items = compileFinder(array);
  return {
    accepts: choice.accepts,
    faults: (value, path, pauses) => (Array.isArray(value) ? items : choice).faults(value, path, pauses),
  };
}

/**
 * The faults of an object are those of its intended form: the only one for objects, or the one with its value of the
 * property in which all forms differ.
 */
function formsFinder(schema: TSchema & ContainerSchema, objects: readonly Form[]): FaultFinder {
  const choice = choiceFinder(schema, choiceOf(schema) ?? 'must have one of the forms that are allowed');
  const finders = objects.map((form) => ({ form, finder: compileFinder(form) }));
  const names = new Set(objects.flatMap(({ properties = {} }) => Object.keys(properties)));
  const key = [...names].find((name) => tellsApart(name, objects));
  return {
    accepts: choice.accepts,
    *faults(value, path, pauses) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return yield* choice.faults(value, path, pauses);
      const tag: unknown = key === undefined ? undefined : Object.getOwnPropertyDescriptor(value, key)?.value;
      const chosen = finders.find(({ form }) => objects.length === 1 || (key !== undefined && mayBe(form, key, tag)));
      for (const fault of chosen?.finder.faults(value, path, pauses) ?? []) {
        const name = fault?.message === unknownMember ? fault.field.slice([...path, ''].join('.').length) : '';
        yield fault && (names.has(name) ? { ...fault, message: `is not for the ${key} ${textOf(tag)}` } : fault);
      }
      if (chosen !== undefined) return;
      if (key === undefined) return yield* choice.faults(value, path, pauses);
      if (tag === undefined) return yield missing([...path, key]);
      const values = objects.flatMap(({ properties }) => valuesOf(properties?.[key]));
      yield { field: [...path, key].join('.'), message: `must be one of ${values.map(textOf).join(', ')}` };
    },
  };
}

/** Whether the form is for objects with this value of the property, or, if undefined, without it. */
function mayBe({ properties, required = [] }: Form, key: string, value: unknown): boolean {
  return value === undefined ? !required.includes(key) : valuesOf(properties?.[key]).includes(value);
}

/** Whether each form has other values of the property. */
function tellsApart(name: string, forms: readonly Form[]): boolean {
  const values = forms.map(({ properties }) => valuesOf(properties?.[name]));
  return values.every(({ length }) => length > 0) && new Set(values.flat()).size === values.flat().length;
}

/** The values that a schema names. */
function valuesOf(schema: (TSchema & ContainerSchema) | undefined): readonly unknown[] {
  if (schema?.const !== undefined) return [schema.const];
  return schema?.enum ?? schema?.anyOf?.flatMap(valuesOf) ?? [];
}

function plainFinder(schema: TSchema & ContainerSchema): FaultFinder {
  const validator = compiledOnce(schema);
  return {
    accepts: (value) => validator().Check(value),
    *faults(value, path) {
      for (const error of validator().Errors(value)) {
        const place = [...path, ...(parsePointer(error.instancePath) ?? [])];
        const words = saidInWords.has(error.keyword) ? schema['x-must'] : undefined;
        const message = words === undefined ? error.message : `must ${words}`;
        if (error.keyword !== 'required') yield { field: place.join('.'), message };
        else for (const key of error.params.requiredProperties) yield missing([...place, key]);
      }
    },
  };
}

function arrayFinder(schema: TSchema & ContainerSchema, itemSchema: TSchema): FaultFinder {
  const { items, uniqueItems = false, ...lengths } = schema;
  const { maxItems = Number.POSITIVE_INFINITY } = schema;
  if (uniqueItems && maxItems > maxUniqueItems) {
    throw new Error(`A schema with uniqueItems needs maxItems, ${maxUniqueItems} at most.`);
  }
  const length = plainFinder(lengths);
  const uniqueness = plainFinder({ uniqueItems });
  const item = compileFinder(itemSchema);
  return {
    accepts: () => false,
    *faults(value, path, pauses) {
      yield* length.faults(value, path, pauses);
      if (!Array.isArray(value) || value.length > maxItems) return;
      yield* uniqueness.faults(value, path, pauses);
      for (const [index, element] of value.entries()) yield* memberFaults(item, element, path, String(index), pauses);
    },
  };
}

function objectFinder(schema: TSchema & ContainerSchema): FaultFinder {
  const { properties = {}, patternProperties = {}, additionalProperties, ...rest } = schema;
  const itself = plainFinder(rest);
  const named = new Map(Object.entries(properties).map(([key, property]) => [key, compileFinder(property)]));
  const patterns = Object.entries(patternProperties).map(([pattern, property]) => ({
    pattern: new RegExp(pattern, 'u'),
    finder: compileFinder(property),
  }));
  return {
    accepts: () => false,
    *faults(value, path, pauses) {
      yield* itself.faults(value, path, pauses);
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
      for (const key of keysOf(value)) {
        const member: unknown = value[key as keyof typeof value];
        const finder = named.get(key) ?? patterns.find(({ pattern }) => pattern.test(key))?.finder;
        if (finder !== undefined) yield* memberFaults(finder, member, path, key, pauses);
        else if (additionalProperties === false) {
          yield { field: [...path, shortened(key)].join('.'), message: unknownMember };
        }
      }
    },
  };
}

function* memberFaults(
  finder: FaultFinder,
  value: unknown,
  path: readonly string[],
  key: string,
  pauses: Pauses,
): Faults {
  if (pauses.isDue()) yield undefined;
  if (!finder.accepts(value)) yield* finder.faults(value, [...path, key], pauses);
}

function shortened(name: string): string {
  return name.length <= maxShownName ? name : `${name.slice(0, maxShownName)}…`;
}

function missing(path: readonly string[]): ErrorDetail {
  return { field: path.join('.'), message: 'is required' };
}
