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
  /** In whose name the call writes. */
  readonly author: Author;
}

/** How one document is read, put and deleted. What is left out is no route of it, or a route of its own kind. */
export interface OneDocument<Params extends TSchema> {
  readonly path: string;
  readonly params: Params;
  readonly tags: string[];
  /** The document in operation ids. */
  readonly name: string;
  /** The document in texts. */
  readonly one: string;
  /** Whether each call does what a restriction asks for. */
  readonly appliesRestriction?: true;
  readonly read: {
    /** Why its answers stay plain; left out: they are compressed. */
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
    /** The answer for a new document, if it says where the document is. */
    readonly located?: TSchema;
    /** Whether a document that is not there is `resource_not_found`; default: PUT creates it. */
    readonly replacesOnly?: boolean;
    put(call: DocumentCall<Params>): Promise<'created' | 'replaced'>;
  };
  readonly remove?: {
    readonly scopes: readonly Scope[];
    /** What the reference says of it; default: that it deletes the document. */
    readonly summary?: string;
    remove(call: DocumentCall<Params>): Promise<void>;
  };
}

/** The routes of one document. To read or to delete what is not there is `resource_not_found`. */
export function documentRoutes<Params extends TSchema>(app: HttpServer, document: OneDocument<Params>): void {
  const { path, tags, name, one, appliesRestriction, read, put, remove } = document;
  const restricted = { ...(appliesRestriction && { appliesRestriction }) };
  const params: TSchema = document.params;
  const called = (request: FastifyRequest): DocumentCall<Params> => ({
    params: request.params as Static<Params>,
    request,
    author: authorOf(request.credentials),
  });
  const a = /^[aeiou]/.test(one) ? 'an' : 'a';

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
        summary: `Retrieving ${a} ${one}`,
        params,
        response: { 200: jsonText(read.schema, { description: `The ${one}.` }) },
      },
    },
    async (request, reply) => await reply.type(jsonType).send(await read.find(called(request))),
  );

  if (put !== undefined) {
    const created = { description: `The ${one} was created.` };
    const replaced = { 204: noContent(`The ${one} is replaced.`) };
    const made = put.located ? json(put.located, { ...created, headers: ['Location'] }) : json(Created, created);
    const answers = { 201: made, ...replaced };
    app.put(
      path,
      {
        config: { ...restricted, scopes: put.scopes, errors: put.errors },
        schema: {
          operationId: `put${name}`,
          tags,
          summary: put.replacesOnly ? `Replacing ${a} ${one}` : `Creating or replacing ${a} ${one}`,
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
          summary: remove.summary ?? `Deleting ${a} ${one}`,
          params,
          response: { 204: noContent(`The ${one} is deleted.`) },
        },
      },
      async (request, reply) => {
        await remove.remove(called(request));
        return await reply.code(204).send();
      },
    );
  }
}
