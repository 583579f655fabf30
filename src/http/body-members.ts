import { type TOptional, type TSchema, type TUnsafe, Type } from 'typebox';
import type { ShownActors, WrittenActors } from '../core/written-restriction.ts';

/**
 * A member that clients of the API family send and Annals does not support (contract 3). It may be null, empty or one
 * of `defaults`; any other value is refused, with a message of what to write `instead`.
 *
 * @example
 * Type.Object({ tags: unsupportedMember('be left out: agents have no tags') });
 */
export function unsupportedMember(
  instead: string,
  ...defaults: readonly (string | number | boolean)[]
): TOptional<TUnsafe<unknown>> {
  const member = Type.Unsafe<unknown>({
    anyOf: [
      { enum: [null, '', ...defaults] },
      { type: 'array', maxItems: 0 },
      { type: 'object', maxProperties: 0, additionalProperties: false },
    ],
    description: `Not supported: it must ${instead}.`,
    'x-must': instead,
  });
  return Type.Optional(member);
}

/** What a reader is to see of who made changes. */
export function writtenActors(description: string) {
  const values = [false, 'names', true, 'all'];
  return Type.Unsafe<WrittenActors>({ enum: values, 'x-must': 'be false, "names", true or "all"', description });
}

/** The same in answers. */
export function shownActors(description: string) {
  return Type.Unsafe<ShownActors>({ enum: [false, true, 'all'], description });
}

/** The service's metadata of a document, as clients send it back (contracts 8 and 9). */
export const metadataMembers = {
  version: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Increases by 1 with every change. A write with a version that is not the current one gets 409.',
    }),
  ),
  createdAt: Type.Optional(Type.String({ format: 'date-time', readOnly: true })),
  modifiedAt: Type.Optional(Type.String({ format: 'date-time', readOnly: true })),
};

/** The same in answers. */
export const shownMetadata = {
  version: Type.Integer({ minimum: 1, description: 'Increases by 1 with every change.' }),
  createdAt: Type.String({ format: 'date-time' }),
  modifiedAt: Type.String({ format: 'date-time' }),
};

export const MetadataInput = Type.Object(metadataMembers, {
  $id: 'MetadataInput',
  additionalProperties: false,
  examples: [{ version: 1, createdAt: '2026-09-01T09:30:00.000Z', modifiedAt: '2026-09-01T09:30:00.000Z' }],
});

/**
 * The schema for validating a body: that of the document, with `readOnly` members accepted and ignored. Throws an Error
 * if an object does not declare `additionalProperties`, so that no schema forgets to refuse unknown members (contract
 * 3).
 */
export function checkedBody(schema: TSchema, place = 'body'): TSchema {
  const { type, properties, patternProperties, additionalProperties, items, anyOf, readOnly } = schema as BodySchema;
  if (readOnly === true) return Type.Unknown();
  if (type === 'object' && additionalProperties === undefined && patternProperties === undefined) {
    throw new Error(`The schema of a request body does not say whether ${place} takes further members.`);
  }
  const members = (named: Readonly<Record<string, TSchema>>) =>
    Object.fromEntries(Object.entries(named).map(([name, member]) => [name, checkedBody(member, `${place}.${name}`)]));
  return {
    ...schema,
    ...(properties && { properties: members(properties) }),
    ...(patternProperties && { patternProperties: members(patternProperties) }),
    ...(items && { items: checkedBody(items, `${place}.items`) }),
    ...(anyOf && { anyOf: anyOf.map((form) => checkedBody(form, place)) }),
  };
}

interface BodySchema {
  type?: unknown;
  properties?: Readonly<Record<string, TSchema>>;
  patternProperties?: Readonly<Record<string, TSchema>>;
  additionalProperties?: unknown;
  items?: TSchema;
  anyOf?: readonly TSchema[];
  readOnly?: boolean;
}
