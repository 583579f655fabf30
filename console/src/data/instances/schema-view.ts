import type { JsonObject, JsonValue } from '@annals/client/json';
import { textFor } from '../../components/numbers.ts';

/** The members of a document that the service adds to it. A schema that does not name them does not see them. */
const added = ['id', 'name', 'metadata'];

/**
 * What the schema of a type is applied to: as in the service, `id`, `name` and `metadata` only where the schema names
 * them.
 */
export function documentForSchema(document: JsonObject, schema: JsonObject): JsonObject {
  const named = new Set([...membersOf(schema.get('properties')).keys(), ...stringsOf(schema.get('required'))]);
  return new Map([...document].filter(([key]) => !added.includes(key) || named.has(key)));
}

/** A member of instances that their table has a column for. */
export interface InstanceField {
  readonly key: string;
  /** Whether the list can be sorted and filtered by it: the query language can write its name. */
  readonly isField: boolean;
  /** The values that the schema allows, where it names a few texts. */
  readonly choices: readonly string[];
}

const maxColumns = 5;
const maxChoices = 12;

/** The columns for instances of a type: those of its schema, or else those that the instances have. */
export function columnsOf(schema: JsonObject | undefined, instances: readonly JsonObject[]): InstanceField[] {
  const properties = membersOf(schema?.get('properties'));
  const keys = properties.size > 0 ? [...properties.keys()] : instances.flatMap((instance) => [...instance.keys()]);
  const shown = [...new Set(keys)].filter((key) => !added.includes(key)).slice(0, maxColumns);
  return shown.map((key) => ({
    key,
    isField: /^[A-Za-z_][A-Za-z0-9_]*$/.test(key),
    choices: choicesOf(properties.get(key)),
  }));
}

function choicesOf(property: JsonValue | undefined): readonly string[] {
  const texts = stringsOf(membersOf(property).get('enum'));
  return texts.length <= maxChoices ? texts : [];
}

/** A document to begin with: what the schema requires, empty. */
export function templateOf(schema: JsonObject | undefined): JsonObject {
  const properties = membersOf(schema?.get('properties'));
  const required = stringsOf(schema?.get('required')).filter((key) => key !== 'id' && key !== 'metadata');
  const template: JsonObject = new Map([['name', new Map([['en', '']])]]);
  for (const key of required) template.set(key, emptyValue(membersOf(properties.get(key))));
  return template;
}

function emptyValue(property: JsonObject): JsonValue {
  const [first] = stringsOf(property.get('enum'));
  if (first !== undefined) return first;
  switch (property.get('type')) {
    case 'array':
      return [];
    case 'object':
      return new Map();
    case 'boolean':
      return false;
    case 'number':
    case 'integer':
    case 'null':
      return null;
    default:
      return '';
  }
}

function membersOf(value: JsonValue | undefined): JsonObject {
  return value instanceof Map ? value : new Map();
}

function stringsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** A member that is a text; empty where it is something else. */
export function memberText(object: JsonObject, key: string): string {
  const value = object.get(key);
  return typeof value === 'string' ? value : '';
}

/** The name of an instance: a text, or one by language. */
export function instanceTitle(instance: JsonObject): string | undefined {
  const name = instance.get('name');
  if (typeof name === 'string') return name;
  if (!(name instanceof Map)) return undefined;
  return textFor(
    Object.fromEntries([...name].filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
  );
}
