import type { FastifySchema, RouteOptions } from 'fastify';
import { type ErrorType, statusOfErrorType } from '../../core/errors.ts';
import { optionalBody } from '../json-body.ts';
import { type Components, isObject, mediaExamples, parameterParts, type Reference } from './components.ts';
import { errorAnswers, errorsOfAll, errorsUnderTenant, unauthorizedAnswer } from './error-answers.ts';

declare module 'fastify' {
  interface FastifySchema {
    /** The operation's name in generated clients; it never changes. */
    operationId?: string;
    tags?: readonly string[];
    summary?: string;
    description?: string;
    /** The media types of the body; default: `application/json`. */
    consumes?: readonly string[];
    /** The schemas of bodies of other media types than JSON, for the OpenAPI document; default: that of `body`. */
    bodies?: Readonly<Record<string, unknown>>;
    /** Omits the route from the document. */
    hide?: boolean;
  }
  interface FastifyContextConfig {
    /** Errors of the operation in addition to those of all operations, for the OpenAPI document. */
    errors?: readonly ErrorType[];
  }
}

export const securityScheme = 'oauth2';
export const viewerScheme = 'viewerToken';

const jsonAlone = ['application/json'] as const;

/** A route as an operation of OpenAPI. */
export function describeOperation(components: Components, route: RouteOptions): object {
  const { schema = {}, config = {}, preValidation } = route;
  const required = ![preValidation].flat().includes(optionalBody);
  const { operationId, tags, summary, description, params, querystring, headers } = schema;
  const { scopes } = config;
  const parameters = [
    ...parametersIn(components, 'path', params),
    ...parametersIn(components, 'query', querystring),
    ...parametersIn(components, 'header', headers),
  ];
  return {
    operationId,
    tags,
    summary,
    ...(description === undefined ? {} : { description }),
    security: securityOf(config),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(schema.body === undefined ? {} : { requestBody: requestBody(components, schema, required) }),
    responses: {
      ...errorAnswers(components, errorsOf(schema, config), config),
      ...(scopes === undefined ? {} : { 401: unauthorizedAnswer(components) }),
      ...ownAnswers(components, schema.response),
    },
  };
}

function securityOf({ scopes = [], isOfViewer }: NonNullable<RouteOptions['config']>): object[] {
  if (isOfViewer) return [{ [viewerScheme]: [] }];
  // Alternatives: any one suffices.
  return scopes.map((scope) => ({ [securityScheme]: [scope] }));
}

/** The errors whose status the route does not describe itself. */
function errorsOf(
  { body, consumes = jsonAlone, response }: FastifySchema,
  { scopes, errors = [] }: NonNullable<RouteOptions['config']>,
): ErrorType[] {
  const readsJson = body !== undefined && consumes.some((type) => type.endsWith('json'));
  const types: ErrorType[] = [
    ...(scopes === undefined ? [] : errorsUnderTenant),
    ...(body === undefined ? [] : (['payload_too_large'] as const)),
    // Forms have their own error for another content type (RFC 6749).
    ...(readsJson ? (['unsupported_media_type'] as const) : []),
    ...errors,
    ...errorsOfAll,
  ];
  const described = isObject(response) ? response : {};
  return types.filter((type) => !(statusOfErrorType[type] in described));
}

/** A parameter whose schema has an `$id` is a component of that name. */
function parametersIn(
  components: Components,
  place: 'path' | 'query' | 'header',
  schema: unknown,
): (object | Reference)[] {
  if (!isObject(schema) || !isObject(schema.properties)) return [];
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, property]) => {
    const { $id, ...rest } = isObject(property) ? property : {};
    const { schema: plain, ...parts } = parameterParts(rest);
    const parameter = {
      // The rest of a path, with its slashes.
      name: name === '*' ? 'path' : name,
      in: place,
      required: required.includes(name),
      ...parts,
      schema: components.schema(plain),
    };
    return typeof $id === 'string' ? components.refer('parameters', $id, parameter) : parameter;
  });
}

function requestBody(
  components: Components,
  { body, consumes = jsonAlone, bodies = {} }: FastifySchema,
  required: boolean,
): object {
  const media = (type: string) => mediaType(components, bodies[type] ?? body);
  return { required, content: Object.fromEntries(consumes.map((type) => [type, media(type)])) };
}

/** The answers that the route declares, in the form of `answers.ts`. */
function ownAnswers(components: Components, response: unknown): Record<string, unknown> {
  const answers = Object.entries(isObject(response) ? response : {});
  return Object.fromEntries(answers.map(([status, answer]) => [status, ownAnswer(components, answer)]));
}

function ownAnswer(components: Components, answer: unknown): unknown {
  const { description, headers, content } = isObject(answer) ? answer : {};
  const names = ['X-Request-Id', ...(Array.isArray(headers) ? headers : [])];
  const described = { description, headers: components.headers(names) };
  if (!isObject(content)) return described;
  const media = Object.entries(content).map(([type, value]) => {
    const { schema, examples } = isObject(value) ? value : {};
    return [type, { ...mediaType(components, schema), ...mediaExamples(examples) }];
  });
  return { ...described, content: Object.fromEntries(media) };
}

/** Examples of a component stay in it; those of other schemas move to the media type. */
function mediaType(components: Components, described: unknown): object {
  if (!isObject(described) || typeof described.$id === 'string') return { schema: components.schema(described) };
  const { examples, ...schema } = described;
  return { schema: components.schema(schema), ...mediaExamples(examples) };
}
