import type { Readable } from 'node:stream';
import { type Static, type TSchema, type TUnsafe, Type } from 'typebox';
import type { AnswerHeader } from './components.ts';

/** The content type of answers sent as JSON text. */
export const jsonType = 'application/json; charset=utf-8';

export const csvType = 'text/csv; charset=utf-8; header=present';

/** A file of changes. */
export const CsvFile = Type.String({
  description:
    'RFC 4180 with a header line, newest first: a line for each change with `paths` and `related` as JSON, or for each path.',
});

/**
 * A success of an operation, for its route's `response`. The schema is documentation and the type of what the handler
 * sends; it does not serialise, so JSON text keeps every digit.
 */
export interface Answer<Body> {
  readonly description: string;
  readonly headers: readonly AnswerHeader[];
  readonly content: Readonly<
    Record<string, { readonly schema: TUnsafe<Body>; readonly examples?: readonly unknown[] }>
  >;
}

interface AnswerOptions {
  readonly description: string;
  readonly headers?: readonly AnswerHeader[];
}

/** The handler sends a value, and Fastify writes its JSON. */
export function json<Schema extends TSchema>(schema: Schema, options: AnswerOptions): Answer<Static<Schema>> {
  return { headers: [], ...options, content: { 'application/json': { schema: Type.Unsafe<Static<Schema>>(schema) } } };
}

/** The handler sends JSON text that is already written. */
export function jsonText(schema: TSchema, options: AnswerOptions): Answer<string> {
  return { headers: [], ...options, content: { 'application/json': { schema: Type.Unsafe<string>(schema) } } };
}

/** The handler sends JSON text in pieces. */
export function jsonStream(schema: TSchema, options: AnswerOptions): Answer<string | Readable> {
  return {
    headers: [],
    ...options,
    content: { 'application/json': { schema: Type.Unsafe<string | Readable>(schema) } },
  };
}

/** A page of a list or a search (spec D), sent as JSON text. */
export function pageOf(
  item: TSchema,
  description: string,
  headers: readonly AnswerHeader[] = [],
): Answer<string | Readable> {
  const paging = ['X-Next-Cursor', 'X-Prev-Cursor', 'X-Total-Count'] as const;
  return jsonStream(Type.Array(item), { description, headers: [...paging, ...headers] });
}

/**
 * A body that is not JSON, by media type.
 *
 * @example
 * stream({ 'text/csv': { schema: Type.String(), example: 'at,type\n' } }, { description: 'The file.' })
 */
export function stream(
  media: Readonly<Record<string, { schema: TSchema; example?: string }>>,
  options: AnswerOptions,
): Answer<Readable> {
  const content = Object.entries(media).map(([type, { schema, example }]) => [
    type,
    { schema: Type.Unsafe<Readable>(schema), ...(example === undefined ? {} : { examples: [example] }) },
  ]);
  return { headers: [], ...options, content: Object.fromEntries(content) };
}

/** 204. */
export function noContent(description: string): TUnsafe<undefined> {
  return Type.Unsafe<undefined>({ type: 'null', description });
}
