/** Headers of answers, each described once; an operation names those that its answer has. */
export const answerHeaders = {
  'X-Request-Id': {
    description: 'Identifies the request in the logs of the service.',
    schema: { type: 'string' },
    example: '0f4d1f5e-6a39-4c0f-9d3c-0c8a1c0b2f11',
  },
  'X-Next-Cursor': {
    description: 'The cursor for `next`. Present only if there is a next page.',
    schema: { type: 'string' },
  },
  'X-Prev-Cursor': {
    description: 'The cursor for `prev`. Present only if there is a previous page.',
    schema: { type: 'string' },
  },
  'X-Total-Count': {
    description: 'The number of items on all pages. Present only if the request header `X-Total-Count` is `true`.',
    schema: { type: 'integer', minimum: 0 },
    example: 42,
  },
  'Server-Timing': {
    description:
      'Of a list of instances: the missing index, if the page was slow without it. Of a read of the change history: how it was answered (`tallies`, `documents`, `search`, `scan` or `merged`), and the milliseconds that it took.',
    schema: { type: 'string' },
    example: 'tallies;dur=2.4',
  },
  Location: {
    description: 'The path of the new resource.',
    schema: { type: 'string', format: 'uri-reference' },
  },
  'Retry-After': {
    description: 'Seconds after which the client may call again.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
  'Session-Id': {
    description: 'The session of the chat: the one of the request, or a new one.',
    schema: { type: 'string', format: 'uuid' },
  },
  'Content-Disposition': {
    description: 'A file name for the download.',
    schema: { type: 'string' },
    example: 'attachment; filename="changes-0199e3a5.ndjson"',
  },
  'Content-Length': {
    description: 'The bytes of the body; left out where it is compressed.',
    schema: { type: 'integer', minimum: 0 },
    example: 1024,
  },
  'WWW-Authenticate': {
    description: 'How to authenticate (RFC 9110, 11.6.1).',
    schema: { type: 'string' },
    example: 'Bearer',
  },
} as const;

export type AnswerHeader = keyof typeof answerHeaders;

/** The name of its component: `X-Next-Cursor` is `NextCursor`. */
export function headerComponent(header: string): string {
  return header.replace(/^X-/, '').replaceAll('-', '');
}
