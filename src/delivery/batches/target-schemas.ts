import { type Static, Type } from 'typebox';
import { TargetHeaders } from '../targets/headers.ts';
import type { TargetMembers } from '../targets/target.ts';
import { targetUrl } from '../targets/url.ts';

/** The limits of a batch: defaults, and what a subscription may set. */
export const batchLimits = {
  maxChanges: { default: 1_000, max: 10_000 },
  // Bytes before compression.
  maxBytes: { default: 1_048_576, min: 1_024, max: 4_194_304 },
  maxSeconds: { default: 10, max: 3_600 },
} as const;

const { maxChanges, maxBytes, maxSeconds } = batchLimits;

/** The bounds of a target's batches. */
export function limitsOf(target: TargetMembers): { maxChanges: number; maxBytes: number; maxSeconds: number } {
  const limits = target as Partial<Record<keyof typeof batchLimits, number>>;
  return {
    maxChanges: limits.maxChanges ?? maxChanges.default,
    maxBytes: limits.maxBytes ?? maxBytes.default,
    maxSeconds: limits.maxSeconds ?? maxSeconds.default,
  };
}

const visible = 'have visible ASCII characters alone';

/** Members of every batch target. */
const batchMembers = {
  format: Type.Optional(
    Type.Enum(['annals', 'cloudevents'], {
      type: 'string',
      description: 'How a change is written: as the feed has it, or as a CloudEvent (1.0).',
      default: 'annals',
    }),
  ),
  maxChanges: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: maxChanges.max,
      default: maxChanges.default,
      description: 'Changes of a batch.',
    }),
  ),
  maxBytes: Type.Optional(
    Type.Integer({
      minimum: maxBytes.min,
      maximum: maxBytes.max,
      default: maxBytes.default,
      description: 'Bytes of a batch before compression. A longer change is a batch of its own.',
    }),
  ),
  maxSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxSeconds.max,
      default: maxSeconds.default,
      description: 'A batch ends so many seconds after its first change was recorded.',
    }),
  ),
} as const;

export const HttpTarget = Type.Object(
  {
    type: Type.Literal('http'),
    url: targetUrl('(?:[/?][^#]*)?'),
    headers: Type.Optional(TargetHeaders),
    encoding: Type.Optional(
      Type.Enum(['ndjson', 'json'], {
        type: 'string',
        description: 'One change a line, or one array.',
        default: 'ndjson',
      }),
    ),
    gzip: Type.Optional(Type.Boolean({ description: 'Whether bodies are compressed.', default: false })),
    ...batchMembers,
  },
  { $id: 'HttpTarget', additionalProperties: false },
);
export type HttpMembers = Omit<Static<typeof HttpTarget>, 'headers'> & { headers?: Readonly<Record<string, string>> };

export const S3Target = Type.Object(
  {
    type: Type.Literal('s3'),
    endpoint: Type.Optional(
      targetUrl('/?', {
        maxLength: 500,
        'x-must': 'be a URL that begins with https:// and ends behind the host',
        description: 'Of another S3 server: https://minio.example. Left out: that of Amazon for the region.',
      }),
    ),
    region: Type.String({
      pattern: '^[a-z0-9-]{1,64}$',
      'x-must': 'have 1 to 64 small letters, digits and hyphens',
      examples: ['eu-central-1'],
    }),
    bucket: Type.String({
      pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      'x-must':
        'be the name of a bucket: 3 to 63 small letters, digits, dots and hyphens, a letter or digit at both ends',
    }),
    prefix: Type.Optional(
      Type.String({
        // S3's safe characters. No segment is `.` or `..`, which URLs normalize away.
        pattern: "^(?!/)(?!(?:.*/)?\\.{1,2}(?:/|$))[A-Za-z0-9!_.*'()/=-]{0,400}$",
        'x-must':
          "have at most 400 letters, digits and characters of !-_.*'()/=, no slash first, and no part that is a dot or two",
        description: 'What the names of all objects begin with: `annals/`.',
      }),
    ),
    accessKeyId: Type.String({ minLength: 1, maxLength: 200, pattern: '^[!-~]+$', 'x-must': visible }),
    secretAccessKey: Type.String({ minLength: 1, maxLength: 500 }),
    ...batchMembers,
  },
  { $id: 'S3Target', additionalProperties: false },
);
export type S3Members = Static<typeof S3Target>;

export const SplunkTarget = Type.Object(
  {
    type: Type.Literal('splunk'),
    url: targetUrl('(?:/[^?#]*)?', { description: 'Of the HTTP Event Collector: https://splunk.example:8088.' }),
    token: Type.String({ minLength: 1, maxLength: 500, pattern: '^[!-~]+$', 'x-must': visible }),
    index: Type.Optional(Type.String({ minLength: 1, maxLength: 80, description: "Left out: the token's." })),
    sourcetype: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: "Left out: the token's." })),
    ...batchMembers,
  },
  { $id: 'SplunkTarget', additionalProperties: false },
);
export type SplunkMembers = Static<typeof SplunkTarget>;
