import type { JsonObject } from '@annals/client/json';
import { textFor } from '../../components/texts.ts';

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
