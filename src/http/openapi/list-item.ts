import { type TSchema, Type } from 'typebox';
import { isObject } from './components.ts';

/**
 * The schema of a resource in a list, under a name of its own. The parameter `fields` selects members, so only the `id`
 * is always there.
 */
export function listItem(name: string, resource: TSchema): TSchema {
  const { examples: _examples, ...partial } = withoutRequired(resource);
  return Type.Unsafe({
    ...partial,
    required: ['id'],
    $id: name,
    description: 'The whole resource, or only the members in `fields`.',
  });
}

/** The schema of a part of the resource. Its name says so: the whole one has a name of its own. */
function withoutRequired(schema: unknown): Record<string, unknown> {
  const { $id, required: _required, ...rest } = isObject(schema) ? schema : {};
  const part = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [key, membersWithoutRequired(key, value)]),
  );
  const hasMembers = 'properties' in rest || 'anyOf' in rest;
  return typeof $id === 'string' && hasMembers ? { ...part, $id: `${$id}Part` } : part;
}

function membersWithoutRequired(key: string, value: unknown): unknown {
  if (key === 'items' && isObject(value)) return withoutRequired(value);
  if (key === 'anyOf' && Array.isArray(value)) return value.map(withoutRequired);
  if (key !== 'properties' || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, withoutRequired(property)]));
}
