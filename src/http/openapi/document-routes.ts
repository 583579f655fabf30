import type { FastifyRequest } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import type { ErrorType } from '../../core/errors.ts';
import { type Author, authorOf } from '../credentials.ts';
import type { HttpServer } from '../http-server-type.ts';
import type { Scope } from '../scopes.ts';
import { json, jsonText, jsonType, noContent } from './answers.ts';

export const Created = Type.Object({ id: Type.String() }, { $id: 'Created' });

interface DocumentCall<Params extends TSchema> {
  readonly params: Static<Params>;
  readonly request: FastifyRequest;
  /** The author of the write. */
  readonly author: Author;
}

/** How a document is read, put and deleted. Operations without an entry have no route, or one of their own. */
export interface OneDocument<Params extends TSchema> {
  readonly path: string;
  readonly params: Params;
  readonly tags: string[];
  /** The document in operation ids. */
  readonly name: string;
  /** The document in texts. */
  readonly singular: string;
  /** Whether each call applies a restriction. */
  readonly appliesRestriction?: true;
  readonly read: {
    /** Why its answers are not compressed; default: they are. */
    readonly neverCompressed?: string;
    readonly scopes: readonly Scope[];
    readonly schema: TSchema;
    /** Returns JSON text. */
    find(call: DocumentCall<Params>): Promise<string>;
  };
  readonly put?: {
    readonly scopes: readonly Scope[];
    readonly errors: readonly ErrorType[];
    readonly body: TSchema;
    /** The answer for a new document with a `Location`. */
    readonly located?: TSchema;
    /** Whether a missing document is `resource_not_found`; default: PUT creates it. */
    readonly replacesOnly?: boolean;
    put(call: DocumentCall<Params>): Promise<'created' | 'replaced'>;
  };
  readonly remove?: {
    readonly scopes: readonly Scope[];
    /** Default: that it deletes the document. */
    readonly summary?: string;
    remove(call: DocumentCall<Params>): Promise<void>;
  };
}

/** The routes of a document. Reading or deleting a missing one is `resource_not_found`. */
export function documentRoutes<Params extends TSchema>(app: HttpServer, document: OneDocument<Params>): void {
  const { path, tags, name, singular, appliesRestriction, read, put, remove } = document;
  const restricted = { ...(appliesRestriction && { appliesRestriction }) };
  const params: TSchema = document.params;
  const called = (request: FastifyRequest): DocumentCall<Params> => ({
    params: request.params as Static<Params>,
    request,
    author: authorOf(request),
  });
  const a = /^[aeiou]/.test(singular) ? 'an' : 'a';

  app.get(
    path,
    {
      config: {
        ...restricted,
        ...(read.neverCompressed !== undefined && { neverCompressed: read.neverCompressed }),
        scopes: read.scopes,
        errors: ['resource_not_found'],
      },
      schema: {
        operationId: `get${name}`,
        tags,
        summary: `Retrieving ${a} ${singular}`,
        params,
        response: { 200: jsonText(read.schema, { description: `The ${singular}.` }) },
      },
    },
    async (request, reply) => await reply.type(jsonType).send(await read.find(called(request))),
  );

  if (put !== undefined) {
    const created = { description: `The ${singular} was created.` };
    const replaced = { 204: noContent(`The ${singular} is replaced.`) };
    const made = put.located ? json(put.located, { ...created, headers: ['Location'] }) : json(Created, created);
    const answers = { 201: made, ...replaced };
    app.put(
      path,
      {
        config: { ...restricted, scopes: put.scopes, errors: put.errors },
        schema: {
          operationId: `put${name}`,
          tags,
          summary: put.replacesOnly ? `Replacing ${a} ${singular}` : `Creating or replacing ${a} ${singular}`,
          params,
          body: put.body,
          response: put.replacesOnly ? (replaced as typeof answers) : answers,
        },
      },
      async (request, reply) => {
        if ((await put.put(called(request))) === 'replaced') return await reply.code(204).send();
        const names: Record<string, string> = Object.assign({}, request.params);
        if (put.located)
          reply.header(
            'location',
            path.replaceAll(/:(\w+)/g, (_, key) => encodeURIComponent(names[key] ?? '')),
          );
        return await reply.code(201).send({ id: Object.values(names).at(-1) });
      },
    );
  }

  if (remove !== undefined) {
    app.delete(
      path,
      {
        config: { ...restricted, scopes: remove.scopes, errors: ['resource_not_found'] },
        schema: {
          operationId: `delete${name}`,
          tags,
          summary: remove.summary ?? `Deleting ${a} ${singular}`,
          params,
          response: { 204: noContent(`The ${singular} is deleted.`) },
        },
      },
      async (request, reply) => {
        await remove.remove(called(request));
        return await reply.code(204).send();
      },
    );
  }
}
